"""`python -m thoughtgate_servers.report`: the command without an installed script.

Never does anything when imported.
"""

from thoughtgate_servers.report import main

if __name__ == "__main__":
    main(prog_name="thoughtgate-report")
