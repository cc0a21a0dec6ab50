"""The language models of declivity_bench's suite `gpt`, in plain PyTorch: a training step, and text generation with a KV cache."""
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None, at=0):
        batch, length, width = x.shape
        q, k, v = self.attn(self.ln_1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if cache is not None:
            cache[0][:, :, at:at + length], cache[1][:, :, at:at + length] = k, v
            k, v = cache[0][:, :, :at + length], cache[1][:, :, :at + length]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary, positions, width, layers, heads):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        self.shape = (heads, width // heads)

    def states(self, tokens, caches=None, at=0):
        x = self.wte(tokens) + self.wpe(torch.arange(at, at + tokens.shape[1]))
        for i, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[i], at)
        return self.ln_f(x)

    def generate(self, tokens, count):
        with torch.inference_mode():
            room = (tokens.shape[0], self.shape[0], tokens.shape[1] + count, self.shape[1])
            caches = [(torch.zeros(room), torch.zeros(room)) for _ in self.blocks]
            at, out = 0, []
            for _ in range(count):
                x = self.states(tokens, caches, at)[:, -1]
                at += tokens.shape[1]
                tokens = F.linear(x, self.wte.weight).argmax(-1, keepdim=True)
                out.append(tokens)
            return torch.cat(out, 1)


models = {}


def model(*sizes):
    if sizes not in models:
        torch.manual_seed(0)
        gpt = GPT(*sizes)
        models[sizes] = gpt, torch.optim.AdamW(gpt.parameters(), lr=1e-4)
    return models[sizes]


def train(sizes, tokens, targets):
    gpt, optimizer = model(*sizes)
    with torch.enable_grad():
        optimizer.zero_grad()
        logits = F.linear(gpt.states(tokens), gpt.wte.weight)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))
        loss.backward()
        optimizer.step()
    return loss.detach()


def generate(sizes, tokens, count):
    return model(*sizes)[0].generate(tokens, count)
