"""Runs a lesson's solution from a clean kernel, and draws the result as one HTML page that needs no network."""

from __future__ import annotations

from typing import Any

from workbench.course import notebook, progress
from workbench.course.cards import card

SECONDS = 120
"""The longest that one cell may take."""


class LessonFailed(RuntimeError):  # noqa: N818 - it says what happened
    """A lesson's solution that does not run, or is not right in every part."""


def execute(lesson: str) -> Any:
    """The executed notebook. Raises LessonFailed for an error, and for any prediction, exercise or question that is not right."""
    import nbformat  # only where notebooks are run
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    made = nbformat.reads(notebook.written(lesson, solution=True), as_version=4)
    progress.forget(lesson)
    try:
        client = NotebookClient(made, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(notebook.folder())}})
        client.extra_arguments = ["--log-level=40"]  # it warns that it talks to itself over this machine's own loopback, unencrypted
        client.execute()
    except CellExecutionError as error:
        raise LessonFailed(str(error).strip().splitlines()[-1]) from error
    except TimeoutError as error:
        raise LessonFailed(f"a cell took more than {SECONDS} s") from error
    _all_right(lesson)
    return made


def _all_right(lesson: str) -> None:
    about, known = card(lesson), progress.lesson(lesson)
    for name in about.predictions:
        if not known["predictions"].get(name, {}).get("right"):
            raise LessonFailed(f"prediction {name}: {known['predictions'].get(name, 'never revealed')}")
    for name in about.exercises:
        if known["exercises"].get(name) is not True:
            raise LessonFailed(f"exercise {name}: not passed")
    if len(known["questions"]) != 3 or not all(known["questions"].values()):
        raise LessonFailed(f"questions: {known['questions'] or 'never answered'}")


def to_html(made: Any, title: str, theme: str = "light") -> str:
    """One page: what Jupyter shows in its `light` or `dark` theme, with nothing fetched from elsewhere."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(theme=theme, mathjax_url="", require_js_url="", jquery_url="", mermaid_js_url="", widget_renderer_url="", html_manager_semver_range="")
    page, _ = exporter.from_notebook_node(made, resources={"metadata": {"name": title}})
    return str(page)
