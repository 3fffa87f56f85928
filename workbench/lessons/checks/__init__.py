"""One module a lesson: the keys of its predictions, the checks of its exercises, the questions of a learner's own run."""
