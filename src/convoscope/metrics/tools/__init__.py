"""The family `tools`: the calls that an agent makes."""
