# Completion of rdma_exporter for fish: the program itself tells what may come next.

function __rdma_exporter_complete
    set -l words (commandline -opc) (commandline -ct)
    # A value after an equals sign is completed as one after a space.
    if set -l parts (string match -r '^(--[^=]+)=(.*)$' -- $words[-1])
        for value in (command $words[1] --completion-bash $words[2..-2] $parts[2] $parts[3] 2>/dev/null)
            # Flags mean that nothing is known of the value.
            string match -q -- '--*' $value; or echo $parts[2]=$value
        end
    else
        command $words[1] --completion-bash $words[2..-1] 2>/dev/null
    end
end

complete -c rdma_exporter -a '(__rdma_exporter_complete)'
