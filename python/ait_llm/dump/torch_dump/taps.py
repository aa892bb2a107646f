"""How a recording listens to a module: by hooks, or where those do not see keyword arguments, around `forward`."""

from __future__ import annotations

import inspect
import sys
import weakref
from typing import TYPE_CHECKING, Any, Callable

import torch

from ait_llm.dump.torch_dump.module_tree import ROOT

if TYPE_CHECKING:
    from ait_llm.dump.torch_dump.session import Session

_HOOK_OPTIONS = inspect.signature(torch.nn.Module.register_forward_hook).parameters
_HOOKS_SEE_KWARGS = "with_kwargs" in _HOOK_OPTIONS
_HOOKS_SEE_FAILURES = "always_call" in _HOOK_OPTIONS

# torch.compile takes this for True while it traces, so that nothing of ours gets into its graphs and none is broken.
is_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)


class Tap:
    """One listened-to module. Copies and pickles of a model carry taps that do nothing."""

    def __init__(
        self,
        session: Session | None = None,
        module: torch.nn.Module | None = None,
        name: str = "",
        type_name: str = "",
        wanted: bool = False,
        expected: bool = False,
    ) -> None:
        self.session = session
        self.module = None if module is None else weakref.ref(module)
        self.name = name
        self.type_name = type_name
        self.wanted = wanted
        self.expected = expected  # to be called in a round; containers never are
        self.is_root = name == ROOT
        self._undo: list[Callable[[], None]] = []

    def attach(self, around: Callable[[], Any] | None = None) -> None:
        """With `around`, each call of forward happens inside such a context."""
        module = None if self.module is None else self.module()
        if module is None or self._undo:
            return
        # torch refuses to put hooks on what it has scripted.
        if around is not None or not _HOOKS_SEE_KWARGS or isinstance(module, torch.jit.ScriptModule):
            wrapped = WrappedForward(self, module, around)
            self._undo = [wrapped.remove]
            return
        options = {"always_call": True} if self.is_root and _HOOKS_SEE_FAILURES else {}
        before = module.register_forward_pre_hook(self.before, with_kwargs=True)
        self._undo = [before.remove]
        after = module.register_forward_hook(self.after, with_kwargs=True, **options)
        self._undo.append(after.remove)

    def detach(self) -> None:
        undo, self._undo = self._undo, []
        for each in undo:
            each()

    def before(self, _module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if is_compiling():
            return
        if self.session is not None:
            self.session.enter(self, args, kwargs)

    def after(self, _module: torch.nn.Module, _args: tuple[Any, ...], _kwargs: dict[str, Any], output: Any) -> None:
        if is_compiling():
            return
        if self.session is not None:
            # A root's hook is called after an exception, too, then without a result.
            raised = self.is_root and output is None and sys.exc_info()[1] is not None
            self.session.leave(self, output, raised)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tap:
        return Tap()

    def __reduce__(self) -> tuple[Any, ...]:
        return Tap, ()


class WrappedForward:
    """Stands in for a module's forward, as an attribute of the instance. Holds no reference to the module."""

    def __init__(self, tap: Tap, module: torch.nn.Module, around: Callable[[], Any] | None) -> None:
        self._tap = tap
        self._module = weakref.ref(module)
        self._around = around
        # Another wrapper, or whatever the model's author has put there.
        self._before: Callable[..., Any] | None = vars(module).get("forward")
        self.__name__ = "forward"
        vars(module)["forward"] = self

    @property
    def _inner(self) -> Callable[..., Any]:
        if self._before is not None:
            return self._before
        return _own_forward(self._module())

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._inner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        session = self._tap.session
        if is_compiling() or session is None:
            return self._inner(*args, **kwargs)
        session.enter(self._tap, args, kwargs)
        try:
            if self._around is None:
                output = self._inner(*args, **kwargs)
            else:
                with self._around():
                    output = self._inner(*args, **kwargs)
        except BaseException:
            session.leave(self._tap, None, True)
            raise
        session.leave(self._tap, output, False)
        return output

    def remove(self) -> None:
        self._tap = Tap()
        module = self._module()
        outer = None if module is None else vars(module).get("forward")
        if outer is self:
            if self._before is None:
                del vars(module)["forward"]
            else:
                vars(module)["forward"] = self._before
        while isinstance(outer, WrappedForward):  # perhaps one of ours is around this one
            if outer._before is self:
                outer._before = self._before
            outer = outer._before
        # Where somebody else has put something around it, it stays and only passes calls on.

    # A copy of a module has a forward of its own, not this one's.
    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        module = self._module()
        return _own_forward(memo.get(id(module), module))

    def __reduce__(self) -> tuple[Any, ...]:
        return _own_forward, (self._module(),)


def _own_forward(module: Any) -> Callable[..., Any]:
    """As if the instance had no such attribute. The class may have a function or, if scripted, something else."""
    forward: Callable[..., Any] = inspect.getattr_static(type(module), "forward").__get__(module, type(module))
    return forward
