import { actions } from '../../actions.ts'
import { type Command, command, WrongUsage } from './command.ts'
import { wordOf } from './command-group.ts'

/** What each shell runs for the words typed so far; the last one is being typed and may be empty. */
const scripts: Record<string, string> = {
  bash: `_cellkeep() {
  local IFS=$'\\n'
  COMPREPLY=($(cellkeep completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ \${COMPREPLY[0]-} == *= ]] && compopt -o nospace
}
complete -o default -F _cellkeep cellkeep
`,
  zsh: `#compdef cellkeep
_cellkeep() {
  local -a found
  found=(\${(f)"$(cellkeep completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -S '' -a found
}
compdef _cellkeep cellkeep
`,
  fish: `complete -c cellkeep -f -a '(cellkeep completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

/** `commands` is a function, because the table of commands contains this one. */
export const completion = (commands: () => readonly Command[]): Command =>
  command({
    name: 'completion',
    usage: 'bash|zsh|fish',
    summary: 'Print a script that completes commands, options, methods and their inputs in a shell.',
    details:
      'Examples:\n  eval "$(cellkeep completion bash)"        in ~/.bashrc\n  eval "$(cellkeep completion zsh)"         in ~/.zshrc\n  cellkeep completion fish > ~/.config/fish/completions/cellkeep.fish',
    args: Number.POSITIVE_INFINITY,
    async run({ args: [shell = '', ...words], io }) {
      if (shell === 'words') {
        io.stdout.write(
          candidates(words, commands())
            .map((one) => `${one}\n`)
            .join(''),
        )
      } else if (Object.hasOwn(scripts, shell)) io.stdout.write(scripts[shell] as string)
      else throw new WrongUsage('Name the shell: bash, zsh or fish.')
    },
  })

/** The completions of the last word. */
function candidates(words: readonly string[], commands: readonly Command[]): string[] {
  const begun = words.at(-1) ?? ''
  return choices(words.slice(0, -1), commands).filter((one) => one.startsWith(begun))
}

function choices([name, ...rest]: readonly string[], commands: readonly Command[]): string[] {
  if (name === undefined) return [...commands.map((one) => one.name), 'help', 'version']
  if (name === 'help') return rest.length === 0 ? commands.map((one) => one.name) : []
  if (name === 'call') return callChoices(rest)
  const command = commands.find((one) => one.name === name)
  const own = command?.commands
  if (own && rest.length === 0) return [...new Set(own.map(wordOf))].filter((word) => word !== name)
  const forms = own ? own.filter((one) => wordOf(one) === rest[0]) : [command ?? []].flat()
  return optionsOf(forms, rest)
}

function callChoices([method, ...rest]: readonly string[]): string[] {
  if (method === undefined) return Object.keys(actions)
  const { shape = {} } = (actions as Record<string, { input: { shape?: object } }>)[method]?.input ?? {}
  const keys = Object.keys(shape).map((key) => `${key}=`)
  return [...keys.filter((key) => !rest.some((word) => word.startsWith(key))), '--url', '--acting', '--json']
}

/** The options that the usage text of these commands names, without those already given. */
const optionsOf = (forms: readonly Command[], given: readonly string[]): string[] => {
  const named = forms.flatMap(({ usage, name }) => `${usage} ${name}`.match(/--[a-z-]+/g) ?? [])
  return [...new Set([...named, '--json', '--help'])].filter((option) => !given.includes(option))
}
