"""What a turn is about, by patterns over its plain words. Owned by `understand`; pure."""

from __future__ import annotations

import re
from enum import StrEnum


class Intent(StrEnum):
    """What a caller may want. Several may stand in one turn, in the order of this list."""

    RESTART = "restart"
    CANCEL = "cancel"
    CHANGE = "change"
    FIND = "find"
    FREE = "free"
    BOOK = "book"
    NEVER_MIND = "never_mind"
    HOURS = "hours"
    CLOCK = "clock"
    SLOWER = "slower"
    REPEAT = "repeat"
    TRANSFER = "transfer"
    IDENTITY = "identity"
    WAIT = "wait"
    THANKS = "thanks"
    HELLO = "hello"
    GOODBYE = "goodbye"


_BOOKING = r"(?:booking|bookings|reservation|reservations|table)"
_PATTERNS = {
    Intent.RESTART: r"\bstart (?:all )?(?:over|again|a new|anew)\b"
    r"|\bfrom the (?:beginning|start|top)\b"
    r"|\b(?:restart|reset)\b|\bbegin again\b",
    Intent.CANCEL: r"\b(?:cancel|cancelled|canceled|cancellation|cancelling|call off)\b"
    rf"|\bcouncil (?:my|the|that) {_BOOKING}\b|\bdelete (?:my|the) {_BOOKING}\b",
    Intent.CHANGE: r"\b(?:change|move|reschedule|modify|switch|shift|amend|update)\b"
    rf"|\bdifferent (?:time|day|date)\b.*\b{_BOOKING}\b",
    Intent.FIND: r"\b(?:do i have|do you have my|have i got|find|look up|check|when is"
    r"|when's|what time is|see|about"
    rf"|details of) (?:\w+ )?(?:a |my |the |our )?(?:\w+ )?{_BOOKING}\b(?! for\b)"
    r"|\b(?:did you book|is it booked|have you booked|is that booked|was that booked)\b",
    Intent.FREE: r"\b(?:what|which|when)\b.*\b(?:free|available|availability|tables? left)\b"
    r"|\b(?:any|what|your) availability\b|\bwhen can (?:i|we) come\b",
    Intent.BOOK: r"\b(?:book|booking|booked|reserve|reservation|reserving|table|tables"
    r"|booker)\b"
    r"|\b(?:come|came) (?:for|to) (?:dinner|lunch|eat)\b|\bhave (?:dinner|lunch)\b",
    Intent.NEVER_MIND: r"\b(?:never mind|nevermind|forget (?:it|that|about it)|leave it"
    r"|scrap that)\b",
    Intent.HOURS: r"\b(?:opening (?:hours?|times?)|(?:what|your|business|the) hours"
    r"|closing time)\b"
    r"|\b(?:when|what time|how late|until when|till when|how long"
    r"|what days?)\b.*\b(?:open|opens"
    r"|opened|close|closes|closed|opening|shut)\b|\b(?:are you|you're|is it) (?:guys "
    r"|still )?(?:open"
    r"|closed)\b|\bdo you (?:open|close)\b|^(?:opening )?hours$",
    Intent.CLOCK: r"\b(?:what time is it|what's the time|what is the time|current time"
    r"|have the time"
    r"|tell me the time|what day is (?:it|today)|what's the date|what is the date|today's date"
    r"|what date is it|time is it now)\b",
    Intent.SLOWER: r"\b(?:slow down|slower|too fast|more slowly|speak slowly|talk slowly"
    r"|slowly)\b",
    Intent.REPEAT: r"\bwhat did you (?:just )?say\b|\bsay (?:that|it) (?:again"
    r"|once more)\b|\brepeat\b"
    r"|\bcome again\b|\b(?:didn't|did not|couldn't|can't) (?:\w+ )?(?:catch|hear|get"
    r"|understand)\b"
    r"|\bonce more\b|\b(?:pardon|say what)\b|^(?:sorry|what|huh|excuse me|again"
    r"|again please|what was"
    r" that|come on again|what do you say|one more time)$",
    Intent.TRANSFER: r"\b(?:speak|talk|talking|speaking) (?:to|with|two) (?:a|an|the|some"
    r"|your|my)?"
    r" ?(?:real |actual |live )?(?:human|person|people|someone|somebody|manager|agent|staff"
    r"|colleague|operator|representative|boss|owner|anyone|anybody)\b|\b(?:operator|real person"
    r"|a human being|representative)\b|\btransfer me\b|\bput me through\b|\bconnect me\b",
    Intent.IDENTITY: r"\bare you (?:an? |really |the |some )*(?:robot|human|real|ai|bot|machine"
    r"|computer|person|language model|llm|chat ?gpt|gpt|artificial|assistant|recording)\b"
    r"|\b(?:who|what) are you\b|\bwho is this\b|\bwhat(?: else)? can you do\b"
    r"|\b(?:chatgpt|language"
    r" model|artificial intelligence)\b|\b(?:help me|help)\b$|^am i (?:talking|speaking) to\b",
    Intent.WAIT: r"^(?:please )?(?:wait|hold on|hang on|just|one|give me|let me)(?: a| one)?"
    r"(?: (?:second|moment|minute|sec|think|see))?(?: please)?$|\b(?:let me think|hold on"
    r"|hang on)\b",
    Intent.THANKS: r"\b(?:thank you|thanks|cheers|thank u)\b",
    Intent.HELLO: r"^(?:hi|hello|hey|good (?:morning|afternoon|evening|day))\b",
    Intent.GOODBYE: r"\b(?:good ?bye|bye|bye bye|good buy|good night|see you"
    r"|have a (?:nice|good) (?:day"
    r"|evening|one|night)|hang up|end the call)\b|\bthat(?:'s| is| will be|'ll be) (?:all"
    r"|it|everything)"
    r"(?! right)(?: (?:for )?(?:now|today|thanks|thank you))?$|\b(?:nothing else|i'm done"
    r"|i am done)\b"
    r"|^(?:buy|by|by by|buy buy)$",
}
_COMPILED = {intent: re.compile(pattern) for intent, pattern in _PATTERNS.items()}
_SHADOWS = {
    Intent.CANCEL: {Intent.BOOK, Intent.FIND, Intent.CHANGE},
    Intent.CHANGE: {Intent.BOOK, Intent.FIND},
    Intent.FIND: {Intent.BOOK},
    Intent.RESTART: {Intent.REPEAT},
    Intent.IDENTITY: {Intent.TRANSFER},
}


def find_intents(text: str) -> tuple[Intent, ...]:
    """Every intent of the turn; "cancel my booking" is a cancellation and no booking."""
    found = [intent for intent, pattern in _COMPILED.items() if pattern.search(text)]
    hidden = {shadow for intent in found for shadow in _SHADOWS.get(intent, ())}
    return tuple(intent for intent in found if intent not in hidden)
