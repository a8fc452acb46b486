"""What makes pictures and films, and how it is run."""

from __future__ import annotations

from msgspec import Struct


class UnetLevel(Struct, frozen=True):
    """The blocks of a UNet that work at one scale, those on the way down, in the middle and up together."""

    channels: int
    scale: int
    """Positions of the latents along an edge for each of this level."""
    resnets: int
    transformers: int
    """Transformer blocks, each with attention to itself and to the text and an MLP."""


class PictureModel(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A pipeline: what reads the text, what takes the noise away step by step, what makes pixels of the result."""

    name: str = ""
    denoiser: int = 0
    """Parameters of what runs in every step."""
    spare: int = 0
    """Parameters of a second one, which runs in other steps (Wan 2.2)."""
    readers: tuple[int, ...] = ()
    """Parameters of each text or image encoder."""
    vae: int = 0
    hidden: int
    """Width of the transformer; of a UNet that of its widest level."""
    blocks: int
    """Transformer blocks; of a UNet all blocks."""
    streams: int = 1
    """Copies of the matrices of a block on average: two where text and picture have their own."""
    widening: float = 4.0
    """Width of the MLP for each element of the hidden state."""
    swapped_units: int
    """Blocks as programs count those that they keep on the host: two narrow ones are one."""
    edge: int
    """Pixels along the edge of a token; of a UNet along that of a latent."""
    text_tokens: int
    levels: tuple[UnetLevel, ...] = ()
    """Of a UNet; empty for a transformer."""
    vae_channels: int
    """Channels of the widest tensor at full size while pixels are made."""
    vae_frames: int = 1
    """Frames that are decoded together; above 1 it makes films."""
    frame_stride: int = 1
    """Frames that one frame of latents stands for."""
    vae_bytes: int = 2
    guided: bool = True
    """Whether every step is computed with and without the text together."""


class PictureRun(Struct, frozen=True, kw_only=True):
    """How such a model is run. What is trained, the batch and the formats stand in the setup."""

    model: PictureModel
    width: int
    height: int
    frames: int = 1
    by_parts: bool = False
    """Whether each part is on the card only while it works (`enable_model_cpu_offload` of diffusers, ComfyUI)."""
    fits_itself: bool = False
    """Whether the program leaves weights on the host that find no place (ComfyUI)."""
    resident: float = 1.0
    """Share of a part's weights that is on the card while it works."""
    swapped: int = 0
    """Blocks that wait on the host."""
    caches_latents: bool = True
    """Whether pixels were turned into latents before training, so that no VAE is there."""
    caches_text: bool = True
    """Whether texts were read before training, so that no encoder is there."""
    tile: int | None = None
    """Pixels along the edge of a tile that is decoded at a time; None is the whole picture."""

    @property
    def tokens(self) -> int:
        """Tokens of one picture or film, without its text."""
        return self.latents * (self.width // self.model.edge) * (self.height // self.model.edge)

    @property
    def latents(self) -> int:
        """Frames of latents."""
        return 1 + (self.frames - 1) // self.model.frame_stride
