"""The course as data: what each lesson is about, its runs and moments, its quiz, how far a learner has come."""
