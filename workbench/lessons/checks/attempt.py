"""Where the checks find `attempt`."""

from workbench.lessons.attempt import attempt, named

__all__ = ["attempt", "named"]
