"""What a lesson's notebook uses: predict, run, see, be checked."""

import warnings

# tqdm asks for widgets that nothing here uses.
warnings.filterwarnings("ignore", message="IProgress not found")

from workbench.lessons.lesson import Lesson
from workbench.lessons.picture import chart, show, table
from workbench.lessons.questions import Published
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, Unfinished, say

__all__ = ["CheckFailed", "Lesson", "Published", "Unfinished", "chart", "events", "say", "show", "table"]
