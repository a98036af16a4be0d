"""What a person sees: tables on a terminal, plain text in a pipe, JSON for a program."""
