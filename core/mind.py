"""The model and the system prompt of an agent, exchanged between model calls only."""

from .model import Model


class Mind:
    """Swaps take effect at the next model call, also in the middle of a request (row 10)."""

    def __init__(self, model: Model, system_prompt: str) -> None:
        self.model = model
        self.system_prompt = system_prompt
        self._pushed: tuple[Model, str] | None = None

    def current(self) -> tuple[Model, str]:
        """What the next call uses, after telling the model its prompt if that changed."""
        pushed = self._pushed
        if pushed is None or pushed[0] is not self.model or pushed[1] != self.system_prompt:
            self.model.set_system_prompt(self.system_prompt)
            self._pushed = (self.model, self.system_prompt)
        return self.model, self.system_prompt
