"""What computes the tokens: a real model, a script, or a recording, behind one small interface."""
