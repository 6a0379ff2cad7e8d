"""The command line: parse, call, print. The only room that imports rich, typer and matplotlib."""
