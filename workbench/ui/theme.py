"""The page's look around the player: Gradio's theme and the few rules it lacks. System fonts only."""

from __future__ import annotations

from importlib import resources

import gradio as gr

HEAD = (
    '<meta name="viewport" content="width=device-width,initial-scale=1">'
    '<link rel="stylesheet" href="/player.css"><script src="/player.js"></script>'
)

SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
MONO = ("ui-monospace", "SF Mono", "Menlo", "Consolas", "monospace")

_TEAL = gr.themes.Color(
    name="teal", c50="#eef3f3", c100="#e6efef", c200="#cddfe0", c300="#a9c6c9", c400="#4fb3bf", c500="#0b5d66",
    c600="#0b5d66", c700="#094b53", c800="#073a40", c900="#06272b", c950="#041b1e",
)  # fmt: skip


def theme() -> gr.themes.Base:
    """Calm panels, one accent; the same tokens as the player's style sheet."""
    return gr.themes.Base(
        primary_hue=_TEAL, neutral_hue=gr.themes.colors.stone, radius_size=gr.themes.sizes.radius_md,
        text_size=gr.themes.sizes.text_sm, font=list(SANS), font_mono=list(MONO),
    ).set(
        body_background_fill="#faf9f6", body_background_fill_dark="#12151a",
        body_text_color="#1d2329", body_text_color_dark="#e8ebee",
        body_text_color_subdued="#5d6670", body_text_color_subdued_dark="#9aa4af",
        background_fill_primary="#ffffff", background_fill_primary_dark="#1a1f26",
        background_fill_secondary="#faf9f6", background_fill_secondary_dark="#12151a",
        block_background_fill="transparent", block_background_fill_dark="transparent",
        block_border_width="0px", block_label_text_color="#5d6670", block_label_text_color_dark="#9aa4af",
        block_title_text_color="#5d6670", block_title_text_color_dark="#9aa4af", block_title_text_weight="400",
        block_padding="0px", block_shadow="none", block_shadow_dark="none",
        border_color_primary="#e4e1da", border_color_primary_dark="#2c333c",
        input_background_fill="#ffffff", input_background_fill_dark="#1a1f26",
        input_border_color="#e4e1da", input_border_color_dark="#2c333c",
        button_primary_background_fill="#0b5d66", button_primary_background_fill_dark="#4fb3bf",
        button_primary_background_fill_hover="#094b53", button_primary_background_fill_hover_dark="#6fd0db",
        button_primary_text_color="#ffffff", button_primary_text_color_dark="#06272b",
        button_secondary_background_fill="#ffffff", button_secondary_background_fill_dark="#1a1f26",
        button_secondary_border_color="#e4e1da", button_secondary_border_color_dark="#2c333c",
        button_secondary_text_color="#1d2329", button_secondary_text_color_dark="#e8ebee",
        checkbox_label_background_fill="#ffffff", checkbox_label_background_fill_dark="#1a1f26",
        checkbox_label_background_fill_selected="#eef3f3", checkbox_label_background_fill_selected_dark="#1f2a2e",
        checkbox_background_color_selected="#0b5d66", checkbox_background_color_selected_dark="#4fb3bf",
        checkbox_border_color_selected="#0b5d66", checkbox_border_color_selected_dark="#4fb3bf",
    )  # fmt: skip


def css() -> str:
    """The rules that Gradio's theme has no variable for."""
    return "\n".join(resources.files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "model.css", "experiments.css", "decode/decode.css"))
