"""Words of general English that say nearly the same, so that a question need not use the words of the answer."""

from __future__ import annotations

from functools import cache

from roles.analysis.words import stem

_GROUPS = """
    add insert append include ; advice recommend recommendation ; allow permit permission authorize grant enable ;
    answer reply respond response acknowledge acknowledgement ; approve accept consent agree ; archive tarball ;
    ask request query ; asterisk wildcard ; author writer creator contributor ; bad poor wrong ;
    begin start commence launch ; better preferable prefer recommended ; big large huge size enormous ;
    bug defect issue problem ; buy purchase acquire order ; car vehicle ;
    change modify alter edit adapt amend update ; check verify validate test examine ; choose select pick ;
    cold cool temperature ; company organization organisation firm employer ; compress compression ;
    configure configuration setting ; confirm acknowledge verify confirmation ; connect connection link ;
    contact email mail ; copy duplicate reproduce replicate ; cost price fee charge expense ; crash abort ;
    customer client user ; damage corrupt broken ; danger risk harm hazard ; dash hyphen ; death die fatal ;
    deep depth ; default standard ; dependency dependencies ; different differ difference distinguish ;
    disagree dispute object ; disk drive storage ; distance far ; doctor physician ; downgrade revert ;
    drawing diagram figure ; empty blank ; encrypt encryption cipher ; end stop finish terminate ;
    error fault failure mistake ; expire expiry expiration ; explain describe ; fail failure crash break ;
    fake forged false ; fall decrease drop reduce ; fast quick speed performance rapid ; find search locate lookup ;
    fine penalty ; fire burn flame ; fit suit compatible ; fix repair correct mend resolve remedy cure ;
    folder directory ; font typeface ; forbid prohibit disallow deny refuse reject ban decline ;
    full complete entire whole ; get obtain receive retrieve fetch ; give provide supply offer deliver ;
    grave critical serious severe ; grow increase ; guarantee warranty assure ; guess brute-force ; happen occur ;
    heavy weight ; high height tall ; hot heat temperature ; house home ; hurt injure injury ; ignore skip exclude ;
    illness disease ; include contain hold ; invoice bill ; join combine merge concatenate ;
    keep retain preserve maintain ; law legal court ; lend loan borrow ; liable liability responsible ;
    licence license ; login account user username ; long length duration ; lose forfeit ; machine computer host ;
    maintainer maintain owner ; make create build generate produce ; manual documentation ;
    many number amount count quantity ; maximum max most limit upper cap ceiling ; measure measurement ;
    medicine drug ; meeting session ; member membership ; memory ram ; minimum min least lower ; money payment fund ;
    name call title ; near close nearby ; nest inside ; new latest recent newer ; object objection oppose ;
    old age outdated obsolete ; option flag switch setting parameter ; own proprietary ; package module library ;
    parent ancestor ; password passphrase credential ; pay payment paid ; picture image photo ; prevent avoid stop ;
    previous earlier former prior before ; program application software executable ; publish release ;
    quit exit leave ; random randomness ; reason cause because ; registry repository ;
    remove delete erase discard drop ; rent lease hire ; replace substitute ; report notify notification ;
    require need must necessary mandatory obligatory compulsory ; right permission entitle ; road street ;
    rule policy guideline ; run execute invoke launch ; safe secure security ; save store write ;
    screen terminal display ; secret private confidential ; sell sale commercial ; send transmit submit upload post ;
    sentence statement notice ; serialise serialize ; share distribute redistribute ; show display print output ;
    shrink reduce compress ; slow delay latency ; small little tiny minor ; split divide separate ;
    start boot launch ; sue litigation lawsuit court ; suggest recommend propose ; team group committee ; test trial ;
    time duration period interval ; trifle trivial minor ; turn switch enable disable ; undo revert rollback ;
    uninstall remove ; upper capital uppercase ; use utilize employ ; valid invalid ; votes majority percent ;
    wait delay pause sleep ; warn warning caution ; water liquid ; website site web ; weigh weight ;
    wide width broad ; withdraw retract revoke ; wrong incorrect
"""


def related(word: str) -> tuple[str, ...]:
    """Return the words that say nearly the same as one in small letters, whatever its ending; mostly none."""
    return _related().get(stem(word), ())


@cache
def _related() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _GROUPS.split(";"):
        words = group.split()
        for word in words:
            others = (other for other in words if stem(other) != stem(word))
            found.setdefault(stem(word), {}).update(dict.fromkeys(others))
    return {word: tuple(others) for word, others in found.items()}
