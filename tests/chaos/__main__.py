"""Plays random swarms under random disturbances, and prints what they had and what went wrong.

Run it with `cd tests && python -m chaos --runs 5000 --seed 1 --backend asyncio`; `--round SEED` plays again the round
of a seed that was printed.
"""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console

from chaos.campaign import Campaign

MEGABYTE = 1024 * 1024


def main() -> int:
    """Play, print, and say by the exit code whether all went as it must."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000, help="how many runs to play (default: 1000)")
    parser.add_argument("--seed", default="1", help="what the rounds are drawn from (default: 1)")
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio")
    parser.add_argument("--round", metavar="SEED", help="play this one round only")
    asked = parser.parse_args()
    console = Console(markup=False, highlight=False, soft_wrap=True)
    campaign, began = Campaign(), time.process_time()
    if asked.round is not None:
        for fault in campaign.play(asked.round, asked.backend):
            console.print(fault)
    else:
        campaign.play_many(asked.runs, asked.seed, asked.backend, console.print)
    for feature, count in sorted(campaign.features.items()):
        console.print(f"{count:8} {feature}")
    seconds = time.process_time() - began
    console.print(f"{campaign.runs} runs in {campaign.rounds} rounds on {asked.backend}, {seconds:.0f} s of CPU")
    for number, (used, objects) in enumerate(campaign.memory, 1):
        console.print(f"memory after {number * 10:3} %: {used / MEGABYTE:.1f} MB, {objects} objects")
    console.print(f"seeds that went wrong: {', '.join(campaign.faults) or 'none'}")
    return 1 if campaign.faults else 0


if __name__ == "__main__":
    sys.exit(main())
