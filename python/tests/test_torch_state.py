"""The state of a model that is distributed: what is read is the newest, and what the program would lose is refused."""

import copy

import pytest

import paceline

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
if torch is not None:
    import paceline.torch
    from test_torch import batch, loss_of, small_model


def test_the_state_of_a_part_is_the_newest_too() -> None:
    model = small_model()
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        loss_of(model, 0).backward()
        trainer.step()
        part = model[2].state_dict()
        torch.testing.assert_close(part["weight"], torch.from_numpy(trainer.store.read("2.weight")))


def test_loading_a_state_between_two_steps_is_refused_with_the_ways_that_there_are() -> None:
    model = small_model()
    state = copy.deepcopy(model.state_dict())
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        loss_of(model, 0).backward()
        trainer.step()
        for part, prefix in ((model, ""), (model[2], "2.")):
            with pytest.raises(ValueError, match="load_state_dict: the values of '.*' lie in the store.*before distribute.*init_from=.*trainer.close"):
                part.load_state_dict({name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)})
    model.load_state_dict(state)
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name])


def test_values_that_the_program_changes_are_not_lost_in_silence() -> None:
    model = small_model()
    with pytest.raises(ValueError, match="parameter '2.bias' was changed by the program"), \
            paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        loss_of(model, 0).backward()
        trainer.step()
        with torch.no_grad():
            model[2].bias.zero_()
        loss_of(model, 1)


def test_a_gradient_that_is_changed_after_backward_is_refused() -> None:
    model = small_model()
    with pytest.raises(ValueError, match=r"the gradient of '.*' was changed after backward.*clip_norm"), \
            paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        loss_of(model, 0).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        trainer.step()


def test_a_second_backward_of_a_step_says_how_to_add_up() -> None:
    model = small_model()
    with pytest.raises(ValueError, match=r"a second gradient of '2\.(bias|weight)' in one step.*trainer.no_exchange\(\)"), \
            paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True):
        loss_of(model, 0).backward()
        loss_of(model, 1).backward()


def test_a_sparse_gradient_is_refused_by_name() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(10, 4, sparse=True))
    with pytest.raises(ValueError, match="the gradient of '0.weight' is torch.sparse_coo.*sparse=False"), \
            paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True):
        model(torch.tensor([1, 2])).sum().backward()


def test_a_parameter_that_only_accumulated_batches_use_counts() -> None:
    plain, model = small_model(), small_model()
    optimizer = torch.optim.SGD(plain.parameters(), 0.1)

    def losses(of: "torch.nn.Module") -> "list[torch.Tensor]":
        return [loss_of(of, 0), of[0](batch(1)[0]).mean()]  # the second does not use the last layer

    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        for _ in range(2):
            optimizer.zero_grad()
            for loss in losses(plain):
                loss.backward()
            optimizer.step()
            first, second = losses(model)
            with trainer.no_exchange():
                first.backward()
            second.backward()
            trainer.step()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_copy_of_the_model_is_an_ordinary_one() -> None:
    model = small_model()
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        averaged = copy.deepcopy(model)  # as for a moving average
        averaged(batch(0)[0]).mean().backward()
        assert not trainer.store._binding.in_step()
        assert averaged[0].weight.grad is not None
        averaged.load_state_dict(model.state_dict())
        loss_of(model, 0).backward()
        trainer.step()


def test_tied_parameters_are_exchanged_once() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(4)
            self.first, self.second = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 10, bias=False)
            self.second.weight = self.first.weight

        def forward(self, ids: "torch.Tensor") -> "torch.Tensor":
            return self.second(self.first(ids))

    plain, model = Tied(), Tied()
    optimizer = torch.optim.SGD(plain.parameters(), 0.1)
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        assert trainer.store.names == ("first.weight",)
        for step in range(3):
            ids = torch.tensor([step, step + 1])
            optimizer.zero_grad()
            plain(ids).square().mean().backward()
            optimizer.step()
            model(ids).square().mean().backward()
            trainer.step()
    torch.testing.assert_close(model.first.weight, plain.first.weight, rtol=1e-5, atol=1e-6)
