#!/usr/bin/env bash
set -euo pipefail
pip install "$(grep -om1 'torch==[0-9.]*' requirements.lock)"
pip install --no-deps --requirement requirements.lock
pip install --no-deps --no-build-isolation --editable .
