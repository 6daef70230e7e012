"""Make a small language model from scratch, with the tokenizer of the demo.

    python make_model.py FOLDER TOKENIZER [SEED]

It knows nothing. What is tried with it is that its tokens and log-probabilities arrive.
"""

import sys

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

folder, source = sys.argv[1:3]
torch.manual_seed(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
tokenizer = AutoTokenizer.from_pretrained(source)
config = LlamaConfig(
    vocab_size=len(tokenizer),
    hidden_size=128,
    intermediate_size=352,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=4096,
    bos_token_id=tokenizer.bos_token_id,
    eos_token_id=tokenizer.eos_token_id,
    pad_token_id=tokenizer.pad_token_id,
)
model = LlamaForCausalLM(config)
model.save_pretrained(folder)
tokenizer.save_pretrained(folder)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters in {folder}")
