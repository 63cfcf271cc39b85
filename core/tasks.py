"""The agent's own plan: a list of tasks that its model rewrites as it goes (spec core 13.3).

The model gives the whole list each time; tasks with equal content keep their ids. Owned by the
agent; without a store that has tasks it does nothing.
"""

from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict, Field

from .events import SubscriberEvent, TasksChanged
from .messages import IdSource
from .records import Task, TaskStatus, task_json
from .store import Store, TaskStore
from .tool import Tool, ToolContext

TASKS_TOOL = "glove_update_tasks"


class Todo(BaseModel):
    """One task as the model writes it."""

    model_config = ConfigDict(populate_by_name=True)

    content: str = Field(min_length=1, description="What is to be done, as an order")
    active_form: str = Field(
        alias="activeForm", min_length=1, description="The same while it is done: 'Checking …'"
    )
    status: TaskStatus = Field(description="Only one task is in_progress at a time")


class UpdateTasks(BaseModel):
    """What the model fills in."""

    todos: list[Todo] = Field(description="The whole list, in order; it replaces the old one")


class Tasks:
    """The tasks of one conversation."""

    def __init__(
        self, store: Store, new_id: IdSource, emit: Callable[[SubscriberEvent], None]
    ) -> None:
        self.store = store if isinstance(store, TaskStore) else None
        self._new_id = new_id
        self._emit = emit

    async def get(self) -> list[Task]:
        """The present list; empty when the store keeps none."""
        return [] if self.store is None else await self.store.get_tasks()

    async def replace(self, todos: Sequence[Todo]) -> list[Task]:
        """Store the new list; a task whose content did not change keeps its id."""
        if self.store is None:
            return []
        known: dict[str, list[str]] = {}
        for task in await self.store.get_tasks():
            known.setdefault(task.content, []).append(task.id)
        tasks = [
            Task(
                id=known[todo.content].pop(0) if known.get(todo.content) else self._new_id("task"),
                content=todo.content,
                active_form=todo.active_form,
                status=todo.status,
            )
            for todo in todos
        ]
        await self.store.add_tasks(tasks)
        self._emit(TasksChanged(tasks=tuple(tasks)))
        return tasks

    def tool(self) -> Tool:
        """`glove_update_tasks`, registered by the agent when its store keeps tasks."""

        async def update(value: UpdateTasks, ctx: ToolContext) -> dict[str, object]:
            tasks = await self.replace(value.todos)
            data = {"tasks": [task_json(task) for task in tasks]}
            return {"status": "success", "data": data, "render_data": data}

        return Tool(
            name=TASKS_TOOL,
            description=(
                "Keep a visible plan for work of several steps: give the whole list every time,"
                " mark one task in_progress before you begin it and completed when it is done."
                " Not for a single simple answer."
            ),
            do=update,
            input_model=UpdateTasks,
        )
