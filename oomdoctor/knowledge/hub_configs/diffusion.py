"""The parameters of what makes pictures and films, by the config.json that diffusers writes; activations are not counted here.

Blocks are those of diffusers 0.35: transformer_flux.py, transformer_sd3.py, transformer_qwenimage.py, transformer_wan.py,
unet_2d_condition.py, autoencoder_kl.py.
"""

from __future__ import annotations

from oomdoctor.knowledge.hub_configs.sizes import MOST_LAYERS, HubConfig, size, sizes, texts

_TIME = 256
"""Width of the sines of a time step."""


def picture_parameters(config: HubConfig) -> int | None:
    """Return the parameters of a model of diffusers; None for a class that is not known, or where a size is missing."""
    made = {
        "FluxTransformer2DModel": _flux,
        "SD3Transformer2DModel": _sd3,
        "QwenImageTransformer2DModel": _qwen_image,
        "WanTransformer3DModel": _wan,
        "UNet2DConditionModel": _unet,
        "AutoencoderKL": _autoencoder,
    }.get(str(config.get("_class_name")))
    return None if made is None else made(config)


def _linear(inside: int, outside: int) -> int:
    return inside * outside + outside


def _width(config: HubConfig) -> int | None:
    heads, head = size(config, "num_attention_heads"), size(config, "attention_head_dim")
    return heads * head if heads and head else None


def _joint(hidden: int, head: int, *, normed: bool) -> int:
    """Return a block that attends to text and picture together, each with matrices, an MLP and a modulation of its own."""
    both = 4 * _linear(hidden, hidden) + _linear(hidden, 4 * hidden) + _linear(4 * hidden, hidden) + _linear(hidden, 6 * hidden)
    return 2 * (both + 2 * head * normed)


def _flux(config: HubConfig) -> int | None:
    hidden, double, single = _width(config), size(config, "num_layers"), size(config, "num_single_layers")
    text, pooled, channels = size(config, "joint_attention_dim"), size(config, "pooled_projection_dim"), size(config, "in_channels")
    head = size(config, "attention_head_dim")
    if not hidden or not head or not double or not single or not text or not pooled or not channels:
        return None
    each = _linear(hidden, 3 * hidden) + _linear(hidden, 4 * hidden) + _linear(5 * hidden, hidden) + 3 * _linear(hidden, hidden) + 2 * head
    time = (2 if config.get("guidance_embeds") is True else 1) * (_linear(_TIME, hidden) + _linear(hidden, hidden))
    around = time + _linear(pooled, hidden) + _linear(hidden, hidden) + _linear(text, hidden) + _linear(channels, hidden)
    return double * _joint(hidden, head, normed=True) + single * each + around + _linear(hidden, 2 * hidden) + _linear(hidden, channels)


def _qwen_image(config: HubConfig) -> int | None:
    hidden, layers, text = _width(config), size(config, "num_layers"), size(config, "joint_attention_dim")
    channels, head, out = size(config, "in_channels"), size(config, "attention_head_dim"), size(config, "out_channels") or 16
    if not hidden or not head or not layers or not text or not channels:
        return None
    around = _linear(_TIME, hidden) + _linear(hidden, hidden) + text + _linear(text, hidden) + _linear(channels, hidden)
    return layers * _joint(hidden, head, normed=True) + around + _linear(hidden, 2 * hidden) + _linear(hidden, 4 * out)


def _sd3(config: HubConfig) -> int | None:
    hidden, layers, head = _width(config), size(config, "num_layers"), size(config, "attention_head_dim")
    text, pooled = size(config, "joint_attention_dim"), size(config, "pooled_projection_dim")
    if not hidden or not layers or not head or not text or not pooled:
        return None
    patch, channels, grid = size(config, "patch_size") or 2, size(config, "in_channels") or 16, size(config, "pos_embed_max_size") or 96
    normed = bool(config.get("qk_norm"))
    twice = len(sizes(config, "dual_attention_layers")) * (4 * _linear(hidden, hidden) + 2 * head * normed + _linear(hidden, 3 * hidden))
    # The last block does not change the text: no MLP, no output, a modulation of two.
    last = _linear(hidden, 4 * hidden) + _linear(4 * hidden, hidden) + _linear(hidden, hidden) + _linear(hidden, 4 * hidden)
    around = patch * patch * channels * hidden + hidden + _linear(_TIME, hidden) + _linear(pooled, hidden) + 2 * _linear(hidden, hidden)
    ends = _linear(text, hidden) + _linear(hidden, 2 * hidden) + _linear(hidden, patch * patch * channels) + grid * grid * hidden
    return layers * _joint(hidden, head, normed=normed) + twice - last + around + ends


def _wan(config: HubConfig) -> int | None:
    hidden, layers, wide, text = _width(config), size(config, "num_layers"), size(config, "ffn_dim"), size(config, "text_dim")
    if not hidden or not layers or not wide or not text:
        return None
    channels, out = size(config, "in_channels") or 16, size(config, "out_channels") or 16
    shown = size(config, "image_dim")
    crossed = 2 * _linear(hidden, hidden) + hidden if size(config, "added_kv_proj_dim") else 0
    attends = 8 * _linear(hidden, hidden) + 4 * hidden + crossed
    each = attends + _linear(hidden, wide) + _linear(wide, hidden) + 6 * hidden + 2 * hidden
    time = _linear(size(config, "freq_dim") or _TIME, hidden) + _linear(hidden, hidden) + _linear(hidden, 6 * hidden)
    around = time + _linear(text, hidden) + _linear(hidden, hidden) + 4 * channels * hidden + hidden
    pictures = 4 * shown + _linear(shown, shown) + _linear(shown, hidden) if shown else 0
    return layers * each + around + pictures + _linear(hidden, 4 * out) + 2 * hidden


def _conv(inside: int, outside: int, side: int = 3) -> int:
    return inside * outside * side * side + outside


def _resnet(inside: int, outside: int, time: int = 0) -> int:
    shortcut = _conv(inside, outside, 1) if inside != outside else 0
    return 2 * inside + _conv(inside, outside) + 2 * outside + _conv(outside, outside) + shortcut + (_linear(time, outside) if time else 0)


def _spatial(channels: int, text: int, blocks: int) -> int:
    """Return a transformer over a picture: attention to itself and to the text, and an MLP with a gate."""
    each = 6 * channels * channels + 2 * text * channels + 2 * channels + 6 * channels
    each += _linear(channels, 8 * channels) + _linear(4 * channels, channels)
    return blocks * each + 2 * _linear(channels, channels) + 2 * channels


def _unet(config: HubConfig) -> int | None:
    channels, text = sizes(config, "block_out_channels"), size(config, "cross_attention_dim")
    if not channels or not text or len(channels) > MOST_LAYERS:
        return None
    depth, time = size(config, "layers_per_block") or 2, 4 * channels[0]
    blocks = sizes(config, "transformer_layers_per_block") or [size(config, "transformer_layers_per_block") or 1] * len(channels)
    down, up = texts(config, "down_block_types"), texts(config, "up_block_types")
    if not len(channels) == len(down) == len(up) == len(blocks):
        return None
    entered = size(config, "in_channels") or 4
    whole = _conv(entered, channels[0]) + _linear(channels[0], time) + _linear(time, time)
    if added := size(config, "projection_class_embeddings_input_dim"):
        whole += _linear(added, time) + _linear(time, time)
    kept, inside = [channels[0]], channels[0]
    for number, outside in enumerate(channels):
        for _ in range(depth):
            whole += _resnet(inside, outside, time) + ("CrossAttn" in down[number]) * _spatial(outside, text, blocks[number])
            inside = outside
            kept.append(outside)
        if number + 1 < len(channels):
            whole += _conv(outside, outside)
            kept.append(outside)
    whole += 2 * _resnet(inside, inside, time) + _spatial(inside, text, blocks[-1])
    for number, outside in enumerate(reversed(channels)):
        for _ in range(depth + 1):
            whole += _resnet(inside + kept.pop(), outside, time) + ("CrossAttn" in up[number]) * _spatial(
                outside, text, blocks[-1 - number]
            )
            inside = outside
        whole += _conv(outside, outside) if number + 1 < len(channels) else 0
    return whole + 2 * inside + _conv(inside, size(config, "out_channels") or 4)


def _autoencoder(config: HubConfig) -> int | None:
    channels, latent = sizes(config, "block_out_channels"), size(config, "latent_channels")
    if not channels or not latent:
        return None
    depth, last = size(config, "layers_per_block") or 2, channels[-1]
    middle = 2 * _resnet(last, last) + 4 * _linear(last, last) + 2 * last
    encoder, inside = _conv(3, channels[0]), channels[0]
    for number, outside in enumerate(channels):
        encoder += (
            _resnet(inside, outside) + (depth - 1) * _resnet(outside, outside) + (number + 1 < len(channels)) * _conv(outside, outside)
        )
        inside = outside
    encoder += middle + 2 * last + _conv(last, 2 * latent)
    decoder, inside = _conv(latent, last) + middle, last
    for number, outside in enumerate(reversed(channels)):
        decoder += _resnet(inside, outside) + depth * _resnet(outside, outside) + (number + 1 < len(channels)) * _conv(outside, outside)
        inside = outside
    decoder += 2 * inside + _conv(inside, 3)
    joined = 0 if config.get("use_quant_conv") is False else _conv(2 * latent, 2 * latent, 1) + _conv(latent, latent, 1)
    return encoder + decoder + joined
