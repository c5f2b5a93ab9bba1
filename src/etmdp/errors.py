"""The one exception that means: the user can mend this. The command line prints it as one sentence."""


class UserError(Exception):
    """A mistake outside the program; its message is one sentence that names the place and the remedy."""
