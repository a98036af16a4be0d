"""The help of `convoscope score`, which has many options: they are listed by what they are for."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

GROUPS = {
    "What comes out": "--out --label --by --target --full --json --markdown --junit --contexts",
    "How logs are read": "--format --map --readers-from --flows --tool-failed --speech-tool --session-gap --strict",
    "What is measured": "--limit --metrics --metrics-from --turns --annotate --k --audit --at-once --workers",
}


class GroupedHelp(TyperCommand):
    """A command whose options have headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        params = {param.opts[0]: param for param in self.get_params(ctx)}
        groups = {heading: names.split() for heading, names in GROUPS.items()}
        grouped = {name for names in groups.values() for name in names}
        arguments = [name for name, param in params.items() if param.param_type_name == "argument"]
        others = [name for name in params if name not in grouped and name not in arguments]
        for heading, names in {"Arguments": arguments, **groups, "Options": others}.items():
            records = [record for name in names if (record := params[name].get_help_record(ctx)) is not None]
            with formatter.section(heading):
                formatter.write_dl(records)
