"""`python -m workbench.lessons build` makes the notebooks; `... run` executes the solutions and draws each as one HTML page."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from workbench.course import notebook, progress
from workbench.course.cards import CourseError, card, cards, folder
from workbench.lessons.execute import LessonFailed, execute, to_html


def main(argv: list[str] | None = None) -> int:
    """The exit code: 0, 1 where a lesson failed, 2 for what cannot be understood."""
    parser = argparse.ArgumentParser(prog="python -m workbench.lessons", description="The course: make its notebooks, or run them.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="write lessons/student and lessons/solutions from lessons/source")
    run = commands.add_parser("run", help="execute the solutions from clean kernels, offline")
    run.add_argument("lesson", nargs="*", help="L1 to L12 and capstone; none: all")
    run.add_argument("--html", type=Path, default=Path("out/lessons"), help="folder for two HTML pages a lesson, light and dark (default: %(default)s)")
    asked = parser.parse_args(argv)
    try:
        if asked.command == "build":
            for path in notebook.write_all():
                print(path.relative_to(folder().parent))
            return 0
        chosen = [card(name).id for name in asked.lesson] or list(cards())
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2
    return _run(chosen, asked.html)


def _run(chosen: list[str], folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    with tempfile.TemporaryDirectory() as fresh:
        os.environ |= {"RADIX_PROGRESS": str(Path(fresh) / "progress.json"), "HF_HUB_OFFLINE": "1"}
        for lesson in chosen:
            began = time.perf_counter()
            try:
                made = execute(lesson)
            except LessonFailed as error:
                failed.append(lesson)
                print(f"{lesson:9} FAILED: {error}", flush=True)
                continue
            for theme in ("light", "dark"):
                page = folder / f"{card(lesson).stem}-{theme}.html"
                page.write_text(to_html(made, f"{lesson}: {card(lesson).title}", theme), encoding="utf-8")
            parts = progress.lesson(lesson)
            print(
                f"{lesson:9} {time.perf_counter() - began:5.1f} s   {len(parts['predictions'])} predictions, {len(parts['exercises'])} exercises, "
                f"{len(parts['questions'])} questions, all right", flush=True,
            )  # fmt: skip
    print(f"{len(chosen) - len(failed)} of {len(chosen)} lessons passed" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
