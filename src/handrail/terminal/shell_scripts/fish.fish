# Shell integration for fish 3.4 and later: marks where prompts, command lines and outputs begin and end.
#
# Fish runs this after the user's files. It uses fish events and wraps no function of the user, so that
# `funcsave fish_prompt` saves theirs; therefore the end of the prompt is not marked. All names begin with __handrail_,
# and nothing is exported.

set -gu __handrail_nonce $HANDRAIL_NONCE
set -e HANDRAIL_NONCE

if status is-interactive; and test -n "$__handrail_nonce"
    set -gu __handrail_count 0

    # Prints $argv with backslashes, semicolons and control characters escaped.
    function __handrail_escape
        set -l text (string join \n -- $argv | string collect)
        if test (string length -- "$text") -gt 16384
            set text (string sub -l 16384 -- "$text" | string collect)…
        end
        set text (string replace -a -- \\ \\\\ "$text" | string collect)
        set text (string replace -a -- ';' '\\x3b' "$text" | string collect)
        if string match -qr '[\x01-\x1f\x7f]' -- "$text"
            for code in 0{1,2,3,4,5,6,7,8,9,a,b,c,d,e,f} 1{0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f} 7f
                set text (string replace -ar -- "\\x$code" "\\\\x$code" "$text" | string collect)
            end
        end
        printf %s "$text"
    end

    # Fish writes a title between this mark and the command's output: `then=title` announces it.
    function __handrail_begins --on-event fish_preexec
        set -gu __handrail_count (math $__handrail_count + 1)
        set -l line (__handrail_escape $argv[1] | string collect)
        printf '\e]633;E;%s;%s\a\e]133;C;nonce=%s;id=%s;then=title\a' "$line" $__handrail_nonce $__handrail_nonce $__handrail_count
    end

    function __handrail_ended --on-event fish_postexec
        set -l code $status
        printf '\e]133;D;%s;nonce=%s;id=%s;took=%s\a' $code $__handrail_nonce $__handrail_count "$CMD_DURATION"
    end

    function __handrail_prompts --on-event fish_prompt
        set -l directory (__handrail_escape $PWD | string collect)
        printf '\e]633;P;Cwd=%s;%s\a\e]133;A;nonce=%s\a' "$directory" $__handrail_nonce $__handrail_nonce
    end
end
