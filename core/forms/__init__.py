"""Forms: structured answers gathered over a conversation (spec core 13.8).

    builder -> definition          what is asked, and what runs when it is answered
    state, revisions               what is stored: answers that are never lost
    evaluation, ledger             what it amounts to, and which hooks that raises
    writing, outcomes, drift       pure changes; engine commits them and runs hooks
    render, tools, runner, mount   what a model, a host and an agent see

Import the public names from here; docs/forms.md shows them at work.
"""

from .answers import Answers, Progress
from .builder import FormBuilder, define_form
from .definition import FormDefinition
from .effects import (
    Complete,
    Effect,
    Fail,
    HookContext,
    Jump,
    Passed,
    Patch,
    Terminate,
)
from .errors import FormConflictError, FormRefused
from .evaluation import Evaluation, FormSnapshot
from .fields import FieldSpec
from .memory import MemoryFormAdapter
from .mount import MountedForms, use_form_runner
from .port import FormAdapter
from .runner import FormChange, FormRunner
from .state import FormInstance, decode_instance, encode_instance
from .tools import form_tools
from .writing import Rejection, WriteReport

__all__ = [
    "Answers",
    "Complete",
    "Effect",
    "Evaluation",
    "Fail",
    "FieldSpec",
    "FormAdapter",
    "FormBuilder",
    "FormChange",
    "FormConflictError",
    "FormDefinition",
    "FormInstance",
    "FormRefused",
    "FormRunner",
    "FormSnapshot",
    "HookContext",
    "Jump",
    "MemoryFormAdapter",
    "MountedForms",
    "Passed",
    "Patch",
    "Progress",
    "Rejection",
    "Terminate",
    "WriteReport",
    "decode_instance",
    "define_form",
    "encode_instance",
    "form_tools",
    "use_form_runner",
]
