"""``python -m skyband.cli`` is ``skyband``."""

from skyband.cli import main

if __name__ == "__main__":
    main()
