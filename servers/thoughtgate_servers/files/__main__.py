"""`python -m thoughtgate_servers.files`: the command without an installed script.

Never does anything when imported.
"""

from thoughtgate_servers.files import main

if __name__ == "__main__":
    main(prog_name="thoughtgate-files")
