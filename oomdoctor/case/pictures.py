"""Models that generate images and videos, and how they are run."""

from __future__ import annotations

from msgspec import Struct


class UnetLevel(Struct, frozen=True):
    """The blocks of a UNet that work at one scale, including the down, middle and up blocks."""

    channels: int
    scale: int
    """Latent positions along an edge for each position of this level."""
    resnets: int
    transformers: int
    """Transformer blocks, each with self-attention, cross-attention to the text, and an MLP."""


class PictureModel(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A pipeline: what encodes the text, what removes the noise step by step, and what decodes the result to pixels."""

    name: str = ""
    denoiser: int = 0
    """Parameters of what runs in every step."""
    spare: int = 0
    """Parameters of a second denoiser, which runs in other steps (Wan 2.2)."""
    readers: tuple[int, ...] = ()
    """Parameters of each text or image encoder."""
    vae: int = 0
    hidden: int
    """Width of the transformer; for a UNet, that of its widest level."""
    blocks: int
    """Transformer blocks; for a UNet, all blocks."""
    streams: int = 1
    """Average copies of a block's matrices: two if text and image have their own."""
    widening: float = 4.0
    """Width of the MLP per element of the hidden state."""
    swapped_units: int
    """Blocks as programs count those kept on the host: two narrow ones are one."""
    edge: int
    """Pixels along the edge of a token; for a UNet, along that of a latent."""
    side: int = 1024
    """Pixels along an edge of the images that it was trained on, in the end."""
    text_tokens: int
    levels: tuple[UnetLevel, ...] = ()
    """For a UNet; empty for a transformer."""
    vae_channels: int
    """Channels of the widest full-size tensor during decoding to pixels."""
    vae_frames: int = 1
    """Frames that are decoded together; above 1 it generates videos."""
    frame_stride: int = 1
    """Frames represented by one latent frame."""
    vae_bytes: int = 2
    guided: bool = True
    """Whether every step is computed both with and without the text, together."""


class PictureRun(Struct, frozen=True, kw_only=True):
    """How such a model is run. What is trained, the batch and the formats are in the setup."""

    model: PictureModel
    width: int
    height: int
    frames: int = 1
    by_parts: bool = False
    """Whether each part is on the GPU only while it works (`enable_model_cpu_offload` of diffusers, ComfyUI)."""
    fits_itself: bool = False
    """Whether the program leaves weights on the host if they do not fit (ComfyUI)."""
    resident: float = 1.0
    """Share of a part's weights that is on the GPU while it works."""
    swapped: int = 0
    """Blocks that wait on the host."""
    caches_latents: bool = True
    """Whether pixels were encoded to latents before training, so that no VAE is loaded."""
    caches_text: bool = True
    """Whether texts were encoded before training, so that no encoder is loaded."""
    tile: int | None = None
    """Pixels along the edge of a tile decoded at a time; None is the whole image."""

    @property
    def tokens(self) -> int:
        """Tokens of one image or video, without its text."""
        return self.latents * (self.width // self.model.edge) * (self.height // self.model.edge)

    @property
    def latents(self) -> int:
        """Latent frames."""
        return 1 + (self.frames - 1) // self.model.frame_stride
