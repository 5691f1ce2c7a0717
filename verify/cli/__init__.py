"""The command-line program ``frontier-verify``: one file per command, composed here."""
