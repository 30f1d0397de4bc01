# Types LINE and a tab into an interactive zsh that finds completions in FOLDER, and
# writes the line that it has then to FILE: complete.zsh FOLDER LINE FILE
zmodload zsh/zpty
export COMPLETE_FOLDER=$1 COMPLETE_FILE=$3
zpty shell zsh -f -i
zpty -w shell 'PROMPT= fpath=($COMPLETE_FOLDER $fpath); autoload -Uz compinit; compinit -u -D'
zpty -w shell 'tell() { print -r -- "$BUFFER" >$COMPLETE_FILE.new; mv $COMPLETE_FILE.new $COMPLETE_FILE }; zle -N tell; bindkey "^X" tell'
zpty -w shell 'print rea""dy'
zpty -r shell output '*ready*'
zpty -w -n shell "$2"$'\t\C-x'
repeat 600; do
  [[ ! -e $COMPLETE_FILE ]] || break
  while zpty -r -t shell output; do :; done
  sleep 0.1
done
zpty -d shell
