"""Models go to Hugging Face's transformers and back, and compute the same.

usage: hugging_face_test.py EVERSTEP CHECKPOINT_LOGITS [unittest's arguments]
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

os.environ["HF_HUB_OFFLINE"] = "1"
import torch  # noqa: E402
import transformers  # noqa: E402

EVERSTEP, LOGITS = sys.argv[1:3]
TOLERANCE = 1e-5
CORPUS = pathlib.Path(__file__).resolve().parents[3] / "examples" / "corpus.txt"


def random_model(model):
    """Every parameter gets numbers that matter, biases and norms too, the same in every run."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_scale = parameter.dim() == 1 and name.endswith("weight")
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator) + (1 if is_scale else 0))
    return model.eval()


def gpt(vocabulary=61):
    config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=4, n_positions=16, vocab_size=vocabulary,
                                     bos_token_id=None, eos_token_id=None)
    return random_model(transformers.GPT2LMHeadModel(config))


def bert(kind):
    config = transformers.BertConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=128,
                                     max_position_embeddings=16, vocab_size=61)
    return random_model(kind(config))


def samples():
    generator = torch.Generator().manual_seed(11)
    tokens = torch.randint(0, 61, (3, 16), generator=generator)
    segments = torch.zeros_like(tokens)
    segments[:, 9:] = 1
    return tokens, segments


class HuggingFace(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.checkpoints = self.directory / "checkpoints"

    def everstep(self, *arguments):
        if not any(argument.startswith("--checkpoint-dir") for argument in arguments):
            arguments += (f"--checkpoint-dir={self.checkpoints}",)
        run = subprocess.run([EVERSTEP, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def our_logits(self, step=0):
        tokens, segments = samples()
        batch = json.dumps({"tokens": tokens.tolist(), "segments": segments.tolist()})
        run = subprocess.run([LOGITS, self.checkpoints, "job", str(step)], input=batch, capture_output=True, text=True,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return {name: torch.tensor(numbers) for name, numbers in json.loads(run.stdout).items()}

    def their_logits(self, model):
        tokens, segments = samples()
        with torch.no_grad():
            if isinstance(model, transformers.GPT2LMHeadModel):
                return {"logits": model(input_ids=tokens).logits.flatten()}
            outputs = model(input_ids=tokens, token_type_ids=segments)
        if isinstance(model, transformers.BertForMaskedLM):
            return {"logits": outputs.logits.flatten()}
        return {"logits": outputs.prediction_logits.flatten(),
                "next_sentence": outputs.seq_relationship_logits.flatten()}

    def assert_equal_logits(self, ours, theirs):
        self.assertEqual(ours.keys(), theirs.keys())
        for name, numbers in theirs.items():
            self.assertGreater(numbers.std().item(), 0.01, "the numbers are too small to tell anything")
            self.assertLess((ours[name] - numbers).abs().max().item(), TOLERANCE, name)

    def check(self, model):
        """Import: we compute what they do. Export of that: they compute what we do, from every tensor of the file."""
        model.save_pretrained(self.directory / "theirs", safe_serialization=True)
        self.everstep("checkpoint", "import", f"--input={self.directory / 'theirs'}")
        ours = self.our_logits()
        self.assert_equal_logits(ours, self.their_logits(model))
        self.everstep("checkpoint", "export", f"--output={self.directory / 'ours'}")
        loaded, info = type(model).from_pretrained(self.directory / "ours", output_loading_info=True)
        self.assertEqual([info["missing_keys"], info["unexpected_keys"], info["mismatched_keys"]], [[], [], []])
        self.assert_equal_logits(ours, self.their_logits(loaded.eval()))
        return loaded

    def test_gpt2_computes_the_same_logits_here_and_there(self):
        self.check(gpt())

    def test_bert_computes_the_same_logits_here_and_there(self):
        self.check(bert(transformers.BertForMaskedLM))

    def test_bert_with_both_heads_computes_the_same_logits_here_and_there(self):
        self.check(bert(transformers.BertForPreTraining))

    def test_an_imported_model_is_trained_on_and_comes_back_better(self):
        model = gpt(vocabulary=256)
        model.save_pretrained(self.directory / "theirs", safe_serialization=True)
        imported = self.everstep("checkpoint", "import", f"--input={self.directory / 'theirs'}", "--json")
        placeholders = {"--workers=N": "--workers=2", "--data=PATH": f"--data={CORPUS}"}
        train = shlex.split(json.loads(imported)["train"])
        self.assertLessEqual(set(placeholders), set(train))
        self.everstep(*[placeholders.get(word, word) for word in train[1:]], "--steps=30", "--lr=0.01",
                      f"--output={self.directory / 'run'}")
        self.everstep("checkpoint", "export", "30", f"--output={self.directory / 'ours'}")
        trained = transformers.GPT2LMHeadModel.from_pretrained(self.directory / "ours").eval()
        self.assert_equal_logits(self.our_logits(step=30), self.their_logits(trained))
        text = torch.tensor(list(CORPUS.read_bytes()[:1600])).view(-1, 16)
        with torch.no_grad():
            before, after = (each(input_ids=text, labels=text).loss.item() for each in (model, trained))
        self.assertLess(after, before - 0.5)

    def test_the_comparison_notices_a_small_change(self):
        model = gpt()
        model.save_pretrained(self.directory / "theirs", safe_serialization=True)
        self.everstep("checkpoint", "import", f"--input={self.directory / 'theirs'}")
        with torch.no_grad():
            model.transformer.h[1].mlp.c_fc.bias[3] += 1e-3
        with self.assertRaises(AssertionError):
            self.assert_equal_logits(self.our_logits(), self.their_logits(model))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
