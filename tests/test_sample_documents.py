"""The facts in the sample documents that a cross-document question rests on: an edit must not break the story."""

from __future__ import annotations

import csv
import re
from datetime import date, datetime, timedelta
from email import message_from_bytes, policy
from itertools import pairwise
from pathlib import Path

import pytest
from docx import Document
from openpyxl import load_workbook
from pptx import Presentation

DOCUMENTS = Path(__file__).parent.parent / "examples" / "documents"


def measurements() -> list[dict[str, str]]:
    with (DOCUMENTS / "measurements.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def text(name: str) -> str:
    return (DOCUMENTS / name).read_text(encoding="utf-8")


def test_the_file_holds_twelve_documents_in_nine_formats() -> None:
    files = sorted(DOCUMENTS.iterdir())
    assert len(files) == 12
    assert {file.suffix for file in files} == {
        ".csv",
        ".docx",
        ".eml",
        ".html",
        ".md",
        ".pdf",
        ".pptx",
        ".txt",
        ".xlsx",
    }


def test_the_measurements_come_every_ten_minutes() -> None:
    times = [datetime.fromisoformat(row["time"]) for row in measurements()]
    assert {later - earlier for earlier, later in pairwise(times)} == {timedelta(minutes=10)}


def test_the_air_of_hall_3_was_warmest_at_0640_and_above_the_limit_for_eight_hours() -> None:
    rows = measurements()
    warm = [row["time"][-5:] for row in rows if float(row["hall3_air_mean_c"]) > -18.0]
    warmest = max(rows, key=lambda row: float(row["hall3_air_mean_c"]))
    assert (warm[0], warm[-1], len(warm)) == ("03:10", "11:10", 49)
    assert (warmest["time"][-5:], warmest["hall3_air_mean_c"]) == ("06:40", "-9.4")


def test_the_figure_of_the_press_notice_is_the_door_sensor() -> None:
    assert max(float(row["hall3_door_t7_c"]) for row in measurements()) == -12.1
    assert "never rose above -12 °C" in text("press-notice.html")
    assert "-12.1 °C that you quote is the door sensor T7" in text("mail-press-notice.eml")


def test_the_supply_was_steady_while_the_incident_report_presumes_a_dip() -> None:
    volts = [int(row["supply_voltage_v"]) for row in measurements()]
    report = " ".join(paragraph.text for paragraph in Document(str(DOCUMENTS / "incident-report.docx")).paragraphs)
    assert (min(volts), max(volts)) == (398, 403)
    assert "I believe that there was a short dip of the public power supply" in report


def test_the_alarm_call_came_one_alarm_delay_after_the_fault() -> None:
    log = text("alarm-log.txt")
    pending = re.search(r"(\S+ \S+)  ALARM +ALARM PENDING, CALL AFTER AL-DLY = (\d+) MIN", log)
    call = re.search(r"(\S+ \S+)  ALARM +CALL TO AL-TEL1 STARTED", log)
    assert pending is not None
    assert call is not None
    delay = datetime.fromisoformat(call[1]) - datetime.fromisoformat(pending[1])
    assert delay == timedelta(minutes=int(pending[2])) == timedelta(minutes=165)


def test_the_supplier_knew_of_the_delay_that_its_statement_denies() -> None:
    mail = text("mail-alarm-delay.eml")
    assert "the factory default of AL-DLY\nis 165 minutes" in mail
    assert "CHANGED FROM 10 MIN TO 165 MIN, USER NV-SERVICE" in text("alarm-log.txt")


def test_the_losses_add_up() -> None:
    sheet = load_workbook(DOCUMENTS / "stock-losses.xlsx")["Pallets"]
    *rows, total = list(sheet.iter_rows(min_row=2, values_only=True))
    stored, destroyed, loss = (sum(float(str(row[column])) for row in rows) for column in (3, 4, 8))
    assert (stored, destroyed, loss) == (total[3], total[4], total[8]) == (212, 38, 61340)


def test_the_inspection_names_the_cause() -> None:
    slides = Presentation(str(DOCUMENTS / "inspection.pptx")).slides
    said = [shape.text_frame.text for slide in slides for shape in slide.shapes if shape.has_text_frame]
    assert any("bearing of condenser fan 2 seized; its motor protection tripped at 01:31" in part for part in said)


@pytest.mark.parametrize("mail", sorted(DOCUMENTS.glob("*.eml")), ids=lambda path: path.stem)
def test_a_mail_has_the_headers_of_a_mail(mail: Path) -> None:
    message = message_from_bytes(mail.read_bytes(), policy=policy.default)
    assert not message.defects
    assert all(message[name] for name in ("From", "To", "Subject", "Date", "Message-ID"))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("maintenance-minutes.md", "Wednesday, 28 February 2024"),
        ("mail-grid-operator.eml", "Sunday, 10 March 2024"),
        ("maintenance-minutes.md", "Monday, 26 February"),
    ],
)
def test_a_weekday_belongs_to_its_date(document: str, words: str) -> None:
    assert words in text(document)
    weekday, day, month, *_ = words.replace(",", "").split()
    assert date(2024, {"February": 2, "March": 3}[month], int(day)).strftime("%A") == weekday
