"""Cases of the store suite: messages, counters and permissions (spec core 5)."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.store_rig import StoreCases, StoreRig, fresh, said, texts
from tests.core.store_values import (
    AWKWARD_NAMES,
    LONE_SURROGATE,
    MENDED_SURROGATE,
    MESSAGE_FIELDS,
    NASTY,
    batches,
    every_flag,
    many,
    messages,
    patches,
)
from voxglove.core import (
    Message,
    MessagePatch,
    ToolCall,
    UnknownMessageError,
    Usage,
    UsageError,
    apply_patch,
)


class MessageCases(StoreCases):
    """Promises of Store about messages."""

    async def test_a_new_conversation_is_empty(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        assert await store.get_messages() == []

    async def test_the_identifier_is_the_id_it_was_opened_by(self, rig: StoreRig) -> None:
        for name in AWKWARD_NAMES:
            conversation = f"{fresh()} {name}"
            store = await rig.open(conversation)
            assert store.identifier == conversation
            await store.append_messages([said("hi")])
            again = await self.again(rig, store)
            assert again.identifier == conversation
            assert await texts(again) == ["hi"]

    async def test_messages_keep_the_order_of_append(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("1", "z"), said("2", "y")])
        await store.append_messages([])
        await store.append_messages([said("3", "x"), said("4", "a")])
        await store.amend_message("y", {"text": "2!"})
        assert await texts(store) == ["1", "2!", "3", "4"]
        assert await texts(await self.again(rig, store)) == ["1", "2!", "3", "4"]

    async def test_the_history_is_never_shortened(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        for start in range(0, 300, 100):
            await store.append_messages([said(str(n)) for n in range(start, start + 100)])
        summary = Message(sender="user", id="sum", text="so far", is_compaction=True)
        await store.append_messages([summary])
        assert await texts(store) == [*map(str, range(300)), "so far"]

    @pytest.mark.parametrize("bad", ["twice in the batch", "stored before", "no id"])
    async def test_an_append_is_all_or_nothing(self, rig: StoreRig, bad: str) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("first", "m1")])
        wrong = {
            "twice in the batch": said("b", "m2"),
            "stored before": said("b", "m1"),
            "no id": Message(sender="user", text="b"),
        }[bad]
        with pytest.raises(UsageError):
            await store.append_messages([said("a", "m2"), said("c", "m3"), wrong])
        assert await texts(store) == ["first"]
        await store.append_messages([said("a", "m2"), said("c", "m3")])
        assert await texts(await self.again(rig, store)) == ["first", "a", "c"]

    async def test_ids_are_compared_exactly(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        ids = ["a", "A", "a ", "á", "a\u0301", *AWKWARD_NAMES]
        await store.append_messages([said(one, one) for one in ids])
        for one in ids:
            await store.amend_message(one, {"heard": one})
        assert [(m.id, m.heard) for m in await store.get_messages()] == [(i, i) for i in ids]

    async def test_lists_are_the_callers_own(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        given_list = [said("a"), said("b")]
        await store.append_messages(given_list)
        given_list.clear()
        taken = await store.get_messages()
        taken.reverse()
        taken.append(said("c"))
        assert await texts(store) == ["a", "b"]

    def test_the_generated_messages_have_every_field(self) -> None:
        assert set(MESSAGE_FIELDS) == {one.name for one in fields(Message)}
        full = every_flag()
        plain = Message(sender="user")
        same = [
            one.name
            for one in fields(Message)
            if getattr(full, one.name) == getattr(plain, one.name)
        ]
        assert same == []

    async def test_every_field_survives(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.append_messages([every_flag()])
        assert await store.get_messages() == [every_flag()]
        assert await (await self.again(rig, store)).get_messages() == [every_flag()]

    @many
    @given(batch=batches)
    async def test_any_message_survives(self, rig: StoreRig, batch: list[Message]) -> None:
        store = await rig.open(fresh())
        await store.append_messages(batch)
        assert await store.get_messages() == batch
        assert await (await self.again(rig, store)).get_messages() == batch

    async def test_nasty_text_survives(self, rig: StoreRig) -> None:
        batch = [
            Message(
                sender="user",
                id=f"m{at}",
                text=nasty,
                tool_calls=(ToolCall(nasty, {nasty: [nasty]}, nasty),),
                provider_options={nasty: nasty},
            )
            for at, nasty in enumerate(NASTY)
        ]
        store = await rig.open(fresh())
        await store.append_messages(batch)
        assert await (await self.again(rig, store)).get_messages() == batch

    async def test_long_text_survives(self, rig: StoreRig) -> None:
        long = "\U0001f98a fox \x00" * 100_000
        store = await rig.open(fresh())
        await store.append_messages([said(long)])
        assert await texts(await self.again(rig, store)) == [long]

    async def test_half_a_surrogate_pair_costs_no_turn(self, rig: StoreRig) -> None:
        """It may be kept or become U+FFFD; text around it and other messages stay."""
        store = await rig.open(fresh())
        call = ToolCall("t", {"q": LONE_SURROGATE}, "c")
        odd = Message(sender="user", id="odd", text=LONE_SURROGATE, tool_calls=(call,))
        await store.append_messages([said("before"), odd, said("after")])
        before, found, after = await (await self.again(rig, store)).get_messages()
        assert (before.text, after.text) == ("before", "after")
        assert found.text in (LONE_SURROGATE, MENDED_SURROGATE)
        assert found.tool_calls[0].input_args in ({"q": LONE_SURROGATE}, {"q": MENDED_SURROGATE})

    @many
    @given(message=messages, first=patches, second=patches)
    async def test_any_amendment_is_kept(
        self, rig: StoreRig, message: Message, first: MessagePatch, second: MessagePatch
    ) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("before"), message, said("after")])
        wanted = apply_patch(message, first)
        assert await store.amend_message(message.id, first) == wanted
        wanted = apply_patch(wanted, second)
        assert await store.amend_message(message.id, second) == wanted
        async for opened in self.before_and_after(rig, store):
            before, found, after = await opened.get_messages()
            assert (before.text, found, after.text) == ("before", wanted, "after")

    async def test_who_has_read_before_sees_an_amendment(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("one", "m1"), said("two", "m2")])
        for text in ("first", "second"):
            await store.amend_message("m1", {"text": text})
            assert await texts(store) == [text, "two"]

    async def test_an_amendment_of_an_unknown_message_changes_nothing(self, rig: StoreRig) -> None:
        store, other = await rig.open(fresh()), await rig.open(fresh())
        await store.append_messages([said("mine", "m1")])
        await other.append_messages([said("theirs", "m2")])
        for unknown in ("m2", "M1", "", "m%"):
            with pytest.raises(UnknownMessageError):
                await store.amend_message(unknown, {"text": "changed"})
        assert await texts(store) + await texts(other) == ["mine", "theirs"]

    async def test_an_amendment_of_an_unknown_field_changes_nothing(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("mine", "m1")])
        with pytest.raises(TypeError):
            await store.amend_message("m1", {"txt": "x"})  # type: ignore[typeddict-unknown-key]
        assert await texts(store) == ["mine"]

    async def test_an_empty_amendment_returns_the_message(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        message = said("mine")
        await store.append_messages([message])
        assert await store.amend_message(message.id, {}) == message


class CounterCases(StoreCases):
    """Promises about token and turn counters, and the total that is billed."""

    async def test_counters_begin_at_zero(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        assert await store.get_token_count() == 0
        assert await store.get_turn_count() == 0
        assert await store.get_token_consumption() == Usage()

    async def test_tokens_in_and_out_are_counted_and_cached_ones_kept(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.add_tokens(Usage(10, 5, 3, 2))
        await store.add_tokens(Usage(1, 2, 4, 8))
        async for opened in self.before_and_after(rig, store):
            assert await opened.get_token_count() == 18
            assert await opened.get_token_consumption() == Usage(11, 7, 7, 10)

    async def test_turns_are_counted(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        for _ in range(3):
            await store.increment_turn()
        assert await store.get_turn_count() == 3
        assert await (await self.again(rig, store)).get_turn_count() == 3

    async def test_fault_13_a_reset_keeps_what_was_consumed(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.append_messages([said("kept")])
        await store.set_permission("t", "granted", "{}")
        await store.add_tokens(Usage(10, 5, 1, 1))
        await store.increment_turn()
        await store.reset_counters()
        assert (await store.get_token_count(), await store.get_turn_count()) == (0, 0)
        assert await store.get_token_consumption() == Usage(10, 5, 1, 1)
        await store.add_tokens(Usage(2, 1))
        await store.increment_turn()
        async for opened in self.before_and_after(rig, store):
            assert (await opened.get_token_count(), await opened.get_turn_count()) == (3, 1)
            assert await opened.get_token_consumption() == Usage(12, 6, 1, 1)
            assert await texts(opened) == ["kept"]
            assert await opened.get_permission("t", "{}") == "granted"

    async def test_large_totals_are_exact(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        for _ in range(3):
            await store.add_tokens(Usage(2**40 + 1, 2**41))
        assert await store.get_token_consumption() == Usage(3 * (2**40 + 1), 3 * 2**41)

    @many
    @given(
        steps=st.lists(
            st.tuples(*[st.integers(0, 2**31)] * 4).map(lambda t: Usage(*t))
            | st.sampled_from(["turn", "reset"]),
            max_size=10,
        )
    )
    async def test_counters_follow_any_order(self, rig: StoreRig, steps: list[Usage | str]) -> None:
        store = await rig.open(fresh())
        tokens, turns, total = 0, 0, Usage()
        for step in steps:
            if isinstance(step, Usage):
                await store.add_tokens(step)
                tokens, total = tokens + step.total, total + step
            elif step == "turn":
                await store.increment_turn()
                turns += 1
            else:
                await store.reset_counters()
                tokens = turns = 0
        assert await store.get_token_count() == tokens
        assert await store.get_turn_count() == turns
        assert await store.get_token_consumption() == total


class PermissionCases(StoreCases):
    """Promises of PermissionStore."""

    async def test_a_permission_nobody_gave_is_unset(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        assert await store.get_permission("pay", "{}") == "unset"

    async def test_a_permission_holds_for_its_tool_and_input(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.set_permission("pay", "granted", '{"eur":1}')
        await store.set_permission("pay", "denied", '{"eur":2}')
        async for opened in self.before_and_after(rig, store):
            assert await opened.get_permission("pay", '{"eur":1}') == "granted"
            assert await opened.get_permission("pay", '{"eur":2}') == "denied"
            for tool, key in (("pay", '{"eur": 1}'), ("PAY", '{"eur":1}'), ("pa", 'y{"eur":1}')):
                assert await opened.get_permission(tool, key) == "unset"

    async def test_the_last_decision_counts(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        await store.set_permission("pay", "granted", "{}")
        await store.set_permission("pay", "denied", "{}")
        assert await store.get_permission("pay", "{}") == "denied"
        await store.set_permission("pay", "unset", "{}")
        assert await (await self.again(rig, store)).get_permission("pay", "{}") == "unset"

    async def test_keys_may_be_long_and_awkward(self, rig: StoreRig) -> None:
        store = await rig.open(fresh())
        keys = [*AWKWARD_NAMES, "x" * 100_000, "x" * 100_001]
        for key in keys:
            await store.set_permission(key[:100], "granted", key)
        for key in keys:
            assert await store.get_permission(key[:100], key) == "granted"
            assert await store.get_permission(key[:100], f"{key}!") == "unset"

    async def test_permissions_are_of_one_conversation(self, rig: StoreRig) -> None:
        store, other = await rig.open(fresh()), await rig.open(fresh())
        await store.set_permission("pay", "granted", "{}")
        assert await other.get_permission("pay", "{}") == "unset"
