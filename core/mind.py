"""The model and the system prompts of an agent, exchanged between model calls only."""

from .model import Model


class Mind:
    """Swaps take effect at the next model call, also in the middle of a request (row 10).

    voice_prompt  stands in for system_prompt while a call holds the turn queue: spoken answers
                  need other rules than written ones; None means the same prompt everywhere
    """

    def __init__(self, model: Model, system_prompt: str, voice_prompt: str | None = None) -> None:
        self.model = model
        self.system_prompt = system_prompt
        self.voice_prompt = voice_prompt
        self._pushed: tuple[Model, str] | None = None

    def prompt(self, *, on_call: bool) -> str:
        """The prompt in force."""
        return self.voice_prompt if on_call and self.voice_prompt else self.system_prompt

    def current(self, *, on_call: bool = False) -> tuple[Model, str]:
        """What the next call uses, after telling the model its prompt if that changed."""
        prompt, pushed = self.prompt(on_call=on_call), self._pushed
        if pushed is None or pushed[0] is not self.model or pushed[1] != prompt:
            self.model.set_system_prompt(prompt)
            self._pushed = (self.model, prompt)
        return self.model, prompt
