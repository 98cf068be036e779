# Shell integration for bash 4.4 and later: marks where prompts, command lines and outputs begin and end.
#
# Bash reads this file instead of its start-up files, and this file sources those unchanged. It uses PROMPT_COMMAND, PS0
# and an invisible suffix of PS1, never the DEBUG trap, which belongs to the user. All names begin with __handrail_,
# nothing is exported, and the first line removes the nonce that authenticates our marks from the environment.

export -n __handrail_nonce="${HANDRAIL_NONCE-}" __handrail_files="${HANDRAIL_FILES-}" __handrail_env="${HANDRAIL_ENV-}"
unset -v HANDRAIL_NONCE HANDRAIL_FILES

if [[ -o posix ]]; then # posix mode made a login shell read this file through ENV; undo it
  set +o posix
  shopt -u inherit_errexit 2>/dev/null || :
  if [[ -n ${HANDRAIL_ENV+given} ]]; then ENV=$__handrail_env; else unset -v ENV; fi
  if [[ ${HISTFILE-} == ~/.sh_history ]]; then HISTFILE=~/.bash_history; fi
fi
unset -v HANDRAIL_ENV __handrail_env

__handrail_count=(0) # an array: bash never exports one, not even under `set -a`
export -n __handrail_empty='' __handrail_told=0 __handrail_number=0 __handrail_done=''
# \001 and \002 enclose text of zero width, for the line editor.
export -n __handrail_b=$'\001\e]133;B;nonce='"$__handrail_nonce"$'\a\002'
# PS0 is all that runs between Enter and the command: it counts in the shell itself and prints from a subshell.
export -n __handrail_ps0='${__handrail_empty:$((__handrail_count[0]+=1,0)):0}$(__handrail_begins "\!")'
export -n __handrail_ps0_plain=$'\e]133;C;nonce='"$__handrail_nonce"$'\a'
# Descriptor 3 is the shell's stderr, where prompts go; the trace of `set -x` is discarded.
export -n __handrail_before='{ __handrail_ended "$?" "$(trap -p DEBUG)"; } 3>&2 2>/dev/null'
export -n __handrail_after='{ __handrail_prompts "$?"; } 3>&2 2>/dev/null'

# Sets __handrail_at to the time field of a mark; empty where bash has no EPOCHREALTIME.
__handrail_clock() {
  __handrail_at=${EPOCHREALTIME-}
  __handrail_at=${__handrail_at:+";at=${__handrail_at/[!0-9]/.}"} # some locales write a comma
}

# Sets __handrail_text to $1 with backslashes, semicolons and control characters escaped.
__handrail_escape() {
  builtin local LC_ALL=C code char
  __handrail_text=$1
  if ((${#__handrail_text} > 16384)); then
    __handrail_text=${__handrail_text:0:16384}$'\xe2\x80\xa6'
  fi
  __handrail_text=${__handrail_text//'\'/'\\'}
  __handrail_text=${__handrail_text//';'/'\x3b'}
  [[ $__handrail_text == *[[:cntrl:]]* ]] || return 0
  for code in 0{1..9} 0{a..f} 1{0..9} 1{a..f} 7f; do
    builtin printf -v char "\\x$code"
    __handrail_text=${__handrail_text//"$char"/"\\x$code"}
  done
}

# Prints the marks of PS0, before a command runs; $1 is the history number of the next line.
__handrail_begins() {
  set +aeux
  builtin local entry=
  if (($1 == __handrail_number + 1)); then # in the history; otherwise it may be secret, or a repeated line
    entry=$(HISTTIMEFORMAT= builtin history 1)
    [[ $entry =~ ^[[:space:]]*[0-9]+[*[:space:]][[:space:]] ]] && entry=${entry:${#BASH_REMATCH[0]}}
  fi
  if [[ -n $entry ]]; then
    __handrail_escape "$entry"
    builtin printf '\e]633;E;%s;%s\a' "$__handrail_text" "$__handrail_nonce"
  fi
  __handrail_clock
  builtin printf '\e]133;C;nonce=%s;id=%s%s\a' "$__handrail_nonce" "$__handrail_count" "$__handrail_at"
} 2>/dev/null

# The first prompt command: $1 is the exit code of the last command, $2 the user's DEBUG trap.
__handrail_ended() {
  builtin local - options="$-"
  set +aeux
  __handrail_tell_end "$1"
  __handrail_done=''
  if [[ -n $2 ]]; then # nothing of ours may run after the user's prompt commands: the trap would see it as a command
    __handrail_prompts "$1"
  fi
  __handrail_arrange "$2"
  if [[ -n ${__handrail_one-} && $options != *e* ]]; then return "$1"; fi # the commands after us in the same string read $?
}

# The last prompt command, after the user's commands have set their prompt.
__handrail_prompts() {
  builtin local -
  set +aeux
  [[ -z $__handrail_done ]] || return 0
  __handrail_tell_end "$1"
  __handrail_escape "$PWD"
  builtin printf '\e]633;P;Cwd=%s;%s\a\e]133;A;nonce=%s\a' "$__handrail_text" "$__handrail_nonce" "$__handrail_nonce" >&3
  __handrail_number='\!'
  __handrail_number=${__handrail_number@P}
  __handrail_dress
  if [[ ${PROMPT_COMMAND-} != "$__handrail_before"* ]]; then
    __handrail_first
    __handrail_done=1 # the array was shifted, so this command may run a second time
  fi
}

__handrail_tell_end() {
  if [[ -n ${__handrail_plain-} ]]; then
    builtin printf '\e]133;D;%s;nonce=%s\a' "$1" "$__handrail_nonce" >&3
  elif ((__handrail_count > __handrail_told)); then
    __handrail_told=$__handrail_count
    __handrail_clock
    builtin printf '\e]133;D;%s;nonce=%s;id=%s%s\a' "$1" "$__handrail_nonce" "$__handrail_count" "$__handrail_at" >&3
  fi
}

# Appends our parts to PS0 and PS1, once; with `shopt -u promptvars` only text that needs no expansion.
__handrail_dress() {
  builtin local ps0="${PS0-}" ps1="${PS1-}" mine='${__handrail_b-}'
  ps0=${ps0//"$__handrail_ps0"/} ps1=${ps1//"$mine"/}
  ps0=${ps0//"$__handrail_ps0_plain"/}
  if builtin shopt -q promptvars; then
    __handrail_plain=
    PS0=$ps0$__handrail_ps0
    PS1=$ps1$mine
  else
    __handrail_plain=1
    PS0=$ps0$__handrail_ps0_plain
    PS1=$ps1
  fi
}

# Keeps ours last among the prompt commands. Changes single elements, because bash iterates over the array meanwhile.
# $1 is the user's DEBUG trap.
__handrail_arrange() {
  if [[ -n ${__handrail_one-} ]]; then
    __handrail_arrange_text "$1"
    return 0
  fi
  builtin local at last
  for at in "${!PROMPT_COMMAND[@]}"; do last=$at; done
  for at in "${!PROMPT_COMMAND[@]}"; do
    if [[ ${PROMPT_COMMAND[at]} == "$__handrail_after" && (-n $1 || $at != "$last") ]]; then
      builtin unset -v "PROMPT_COMMAND[$at]"
    fi
  done
  [[ -n $1 || ${PROMPT_COMMAND[last]-} == "$__handrail_after" ]] || PROMPT_COMMAND+=("$__handrail_after")
}

# The same before bash 5.1, where PROMPT_COMMAND is one string. A newline in it would put our commands into the history,
# so there is one only after a comment.
__handrail_arrange_text() {
  builtin local theirs="${PROMPT_COMMAND-}" space=$'[; \t\n]'
  theirs=${theirs//"$__handrail_before"/}
  theirs=${theirs//"$__handrail_after"/}
  while [[ $theirs == $space* ]]; do theirs=${theirs#?}; done
  while [[ $theirs == *$space ]]; do theirs=${theirs%?}; done
  PROMPT_COMMAND="$__handrail_before${theirs:+; }$theirs"
  [[ -z $1 ]] || return 0
  case $theirs in
    *'#'*) PROMPT_COMMAND+=$'\n' ;;
    *'&') PROMPT_COMMAND+=' ' ;;
    *) PROMPT_COMMAND+='; ' ;;
  esac
  PROMPT_COMMAND+=$__handrail_after
}

# Puts ours first again, after the user's files or the user have replaced PROMPT_COMMAND.
__handrail_first() {
  if [[ -n ${__handrail_one-} ]]; then
    __handrail_arrange_text ''
    return 0
  fi
  builtin local at downwards= IFS=' '
  for at in "${!PROMPT_COMMAND[@]}"; do downwards="$at $downwards"; done
  for at in $downwards; do PROMPT_COMMAND[at + 1]=${PROMPT_COMMAND[at]}; done
  PROMPT_COMMAND[0]=$__handrail_before
}

# Runs after the user's files, when bash does not iterate over PROMPT_COMMAND yet. $1 is the user's DEBUG trap.
__handrail_install() {
  builtin local -
  set +aeux
  ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)) || __handrail_one=1 # arrays of prompt commands need 5.1
  __handrail_first
  __handrail_arrange "$1"
}

# Source the user's files, as bash would. A failing last line must not end a shell with `set -e`.
: # sets $? to 0, as for any start-up file
case $__handrail_files in
  login)
    if [[ -r /etc/profile ]]; then . /etc/profile || :; fi
    if [[ -r ~/.bash_profile ]]; then
      . ~/.bash_profile || :
    elif [[ -r ~/.bash_login ]]; then
      . ~/.bash_login || :
    elif [[ -r ~/.profile ]]; then
      . ~/.profile || :
    fi
    ;;
  rc:*) if [[ -r ${__handrail_files#rc:} ]]; then . "${__handrail_files#rc:}" || :; fi ;;
  rc) if [[ -r ~/.bashrc ]]; then . ~/.bashrc || :; fi ;;
esac
unset -v __handrail_files
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) && [[ -n $__handrail_nonce ]]; then
  __handrail_install "$(trap -p DEBUG)" 2>/dev/null
fi
