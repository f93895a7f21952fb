"""Chat templates that Octavo brings along, for models without one and for users who want another. Jinja text only."""

from __future__ import annotations

import difflib

from octavo_engine.errors import TemplateError

# Most families have no system role: their first question carries the system text.
_SYSTEM_IN_FIRST_QUESTION = """\
{%- if messages and messages[0]['role'] == 'system' -%}
  {%- set system = messages[0]['content'] | trim -%}
  {%- set turns = messages[1:] -%}
{%- else -%}
  {%- set system = '' -%}
  {%- set turns = messages -%}
{%- endif -%}
"""

BUILT_IN_TEMPLATES = {
    "chatml": """\
{%- for message in messages -%}
{{ '<|im_start|>' ~ message['role'] ~ '\\n' ~ message['content'] ~ '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\\n' }}
{%- endif -%}
""",
    "llama2": _SYSTEM_IN_FIRST_QUESTION
    + """\
{%- for message in turns -%}
  {%- if message['role'] == 'assistant' -%}
{{ ' ' ~ message['content'] | trim ~ ' ' ~ eos_token }}
  {%- else -%}
    {%- set question = message['content'] | trim -%}
    {%- if loop.first and system -%}
      {%- set question = '<<SYS>>\\n' ~ system ~ '\\n<</SYS>>\\n\\n' ~ question -%}
    {%- endif -%}
{{ bos_token ~ '[INST] ' ~ question ~ ' [/INST]' }}
  {%- endif -%}
{%- endfor -%}
""",
    "llama3": """\
{{- bos_token -}}
{%- for message in messages -%}
{{ '<|start_header_id|>' ~ message['role'] ~ '<|end_header_id|>\\n\\n' ~ message['content'] | trim ~ '<|eot_id|>' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif -%}
""",
    "mistral": "{{- bos_token -}}\n"
    + _SYSTEM_IN_FIRST_QUESTION
    + """\
{%- for message in turns -%}
  {%- if message['role'] == 'assistant' -%}
{{ ' ' ~ message['content'] | trim ~ eos_token }}
  {%- else -%}
{{ '[INST] ' ~ (system ~ '\\n\\n' if loop.first and system else '') ~ message['content'] | trim ~ ' [/INST]' }}
  {%- endif -%}
{%- endfor -%}
""",
    "gemma": "{{- bos_token -}}\n"
    + _SYSTEM_IN_FIRST_QUESTION
    + """\
{%- for message in turns -%}
  {%- set author = 'model' if message['role'] == 'assistant' else message['role'] -%}
  {%- set before = system ~ '\\n\\n' if loop.first and system else '' -%}
{{ '<start_of_turn>' ~ author ~ '\\n' ~ before ~ message['content'] | trim ~ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<start_of_turn>model\\n' }}
{%- endif -%}
""",
    "phi3": """\
{%- for message in messages -%}
{{ '<|' ~ message['role'] ~ '|>\\n' ~ message['content'] ~ '<|end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|assistant|>\\n' }}
{%- endif -%}
""",
    "zephyr": """\
{%- for message in messages -%}
{{ '<|' ~ message['role'] ~ '|>\\n' ~ message['content'] ~ eos_token ~ '\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|assistant|>\\n' }}
{%- endif -%}
""",
    "alpaca": """\
{%- for message in messages -%}
  {%- if message['role'] == 'system' -%}
{{ message['content'] ~ '\\n\\n' }}
  {%- elif message['role'] == 'assistant' -%}
{{ '### Response:\\n' ~ message['content'] ~ eos_token ~ '\\n\\n' }}
  {%- else -%}
{{ '### Instruction:\\n' ~ message['content'] ~ '\\n\\n' }}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '### Response:\\n' }}
{%- endif -%}
""",
}


def template_source(choice: str) -> str:
    """The Jinja text of a choice: one of Octavo's templates by name, or Jinja text as it stands.

    Raises:
        TemplateError: a single word that is not the name of one.
    """
    if choice in BUILT_IN_TEMPLATES:
        return BUILT_IN_TEMPLATES[choice]
    if "{" in choice or len(choice.split()) != 1:
        return choice
    nearest = difflib.get_close_matches(choice, BUILT_IN_TEMPLATES, n=1, cutoff=0)[0]
    raise TemplateError(
        f"Octavo has no chat template named {choice!r}; it has {', '.join(BUILT_IN_TEMPLATES)} (the nearest is "
        f"{nearest}). Give one of these names, or the text of a Jinja template."
    )
