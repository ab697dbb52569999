# fish completion for hpclaunch; written by: hpclaunch completion fish
function __hpclaunch
  set -l words (commandline -opc) (commandline -ct)
  for line in ($words[1] complete -- $words[2..-1] 2>/dev/null)
    switch $line
      case @files
        __fish_complete_path (commandline -ct)
      case @directories
        __fish_complete_directories (commandline -ct)
      case '*'
        echo $line
    end
  end
end
complete -c hpclaunch -f -a '(__hpclaunch)'
complete -c torchrun-hpclaunch -f -a '(__hpclaunch)'
