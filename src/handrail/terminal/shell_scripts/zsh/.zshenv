# Shell integration for zsh 5 and later: marks where prompts, command lines and outputs begin and end.
#
# Zsh reads this file because ZDOTDIR names our directory. It restores ZDOTDIR first, so that all files of the user,
# including their .zshenv, are read from their place, and a nested zsh is not affected. All names begin with __handrail_,
# nothing is exported, and the nonce that authenticates our marks is removed from the environment.

'builtin' 'typeset' '-g' '+x' __handrail_nonce="${HANDRAIL_NONCE-}"
if [[ -n "${HANDRAIL_ZDOTDIR+given}" ]]; then
  'builtin' 'export' ZDOTDIR="$HANDRAIL_ZDOTDIR"
else
  'builtin' 'unset' 'ZDOTDIR'
fi
'builtin' 'unset' 'HANDRAIL_NONCE' 'HANDRAIL_ZDOTDIR'

if [[ -o interactive && -n "$__handrail_nonce" ]]; then
  'builtin' 'typeset' '-gi' '+x' __handrail_count=0 __handrail_told=0
  'builtin' 'typeset' '-g' '+x' __handrail_b=$'%{\e]133;B;nonce='"$__handrail_nonce"$'\a%}' __handrail_eol='' __handrail_text=''

  # Sets __handrail_text to $1 with backslashes, semicolons and control characters escaped.
  __handrail_escape() {
    'builtin' 'emulate' '-L' 'zsh' '-o' 'no_multibyte'
    __handrail_text=$1
    if (( ${#__handrail_text} > 16384 )); then
      __handrail_text=${__handrail_text[1,16384]}$'\xe2\x80\xa6'
    fi
    __handrail_text=${__handrail_text//\\/\\\\}
    __handrail_text=${__handrail_text//;/\\x3b}
    [[ $__handrail_text == *[[:cntrl:]]* ]] || 'builtin' 'return' 0
    'builtin' 'local' code char
    for code in 0{1..9} 0{a..f} 1{0..9} 1{a..f} 7f; do
      char=${(g::):-\\x$code}
      __handrail_text=${__handrail_text//$char/\\x$code}
    done
  }

  # Runs before a command; $1 is the line as typed, $3 with aliases expanded.
  __handrail_preexec() {
    'builtin' 'emulate' '-L' 'zsh' '-o' 'unset' '-o' 'no_err_exit' '-o' 'no_err_return' '-o' 'no_xtrace' '-o' 'no_all_export'
    (( __handrail_count += 1 ))
    __handrail_arrange
    PS1=${PS1//$__handrail_b/} # the command must not see our suffix
    'builtin' 'local' about="nonce=$__handrail_nonce;id=$__handrail_count"
    # Zsh prints PROMPT_EOL_MARK after an unfinished line before any hook runs, so the end mark is part of it.
    [[ -n ${PROMPT_EOL_MARK+given} ]] && __handrail_eol_was=$PROMPT_EOL_MARK || 'builtin' 'unset' __handrail_eol_was
    __handrail_eol=$'%{\e]133;D;%?;'"$about;at=%D{%s.%6.}"$'\a%}'"${PROMPT_EOL_MARK-%B%S%#%s%b}"
    PROMPT_EOL_MARK=$__handrail_eol
    __handrail_escape "${1:-${3-}}"
    'builtin' 'print' '-rn' '--' $'\e]633;E;'"$__handrail_text;$__handrail_nonce"$'\a\e]133;C;'"$about;at=${(%):-%D{%s.%6.\}}"$'\a' >&2
  }

  # The first precmd hook: reports the exit code of the last command.
  __handrail_ended() {
    'builtin' 'local' code=$? said=''
    [[ -o prompt_sp && -o prompt_cr && -n $__handrail_eol && ${PROMPT_EOL_MARK-} == "$__handrail_eol" ]] && said=1
    'builtin' 'emulate' '-L' 'zsh' '-o' 'unset' '-o' 'no_err_exit' '-o' 'no_err_return' '-o' 'no_xtrace' '-o' 'no_all_export'
    if [[ -n $__handrail_eol && ${PROMPT_EOL_MARK-} == "$__handrail_eol" ]]; then
      [[ -n ${__handrail_eol_was+given} ]] && PROMPT_EOL_MARK=$__handrail_eol_was || 'builtin' 'unset' PROMPT_EOL_MARK
    fi
    __handrail_eol=''
    if (( __handrail_count > __handrail_told )); then
      __handrail_told=$__handrail_count
      [[ -n $said ]] || 'builtin' 'print' '-rn' '--' $'\e]133;D;'"$code;nonce=$__handrail_nonce;id=$__handrail_count;at=${(%):-%D{%s.%6.\}}"$'\a' >&2
    fi
    'builtin' 'return' 0
  }

  # The last precmd hook, after the user's hooks have set their prompt.
  __handrail_prompts() {
    'builtin' 'local' percent=''
    [[ -o prompt_percent ]] && percent=1
    'builtin' 'emulate' '-L' 'zsh' '-o' 'unset' '-o' 'no_err_exit' '-o' 'no_err_return' '-o' 'no_xtrace' '-o' 'no_all_export'
    __handrail_escape "$PWD"
    'builtin' 'print' '-rn' '--' $'\e]633;P;Cwd='"$__handrail_text;$__handrail_nonce"$'\a\e]133;A;nonce='"$__handrail_nonce"$'\a' >&2
    PS1=${PS1//$__handrail_b/}
    [[ -n $percent ]] && PS1+=$__handrail_b
    __handrail_arrange
    'builtin' 'return' 0
  }

  # Keeps our hooks first and last in the lists, for the next prompt.
  __handrail_arrange() {
    if [[ ${precmd_functions[1]-} != __handrail_ended || ${precmd_functions[-1]-} != __handrail_prompts ]]; then
      precmd_functions=(__handrail_ended ${precmd_functions:#__handrail_(ended|prompts)} __handrail_prompts)
    fi
    if [[ ${preexec_functions[-1]-} != __handrail_preexec ]]; then
      preexec_functions=(${preexec_functions:#__handrail_preexec} __handrail_preexec)
    fi
  }

  'builtin' 'typeset' '-ga' precmd_functions preexec_functions
  precmd_functions=(__handrail_ended $precmd_functions __handrail_prompts)
  preexec_functions=($preexec_functions __handrail_preexec)
fi

if [[ -r "${ZDOTDIR-$HOME}/.zshenv" ]]; then
  'builtin' '.' "${ZDOTDIR-$HOME}/.zshenv" || 'builtin' ':'
fi
