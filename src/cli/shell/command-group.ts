import { type Command, perhaps, withUsage, wrongUsage } from './command.ts'

/**
 * A group: the first argument selects the command; without one, the command with the name of the group is used. Flags
 * distinguish commands with the same word.
 */
export function group(spec: {
  name: string
  summary: string
  details?: string
  commands: readonly Command[]
  /** The word that may be left out. */
  defaultWord?: string
}): Command {
  const { name, commands, defaultWord = name } = spec
  const words = [...new Set(commands.map(wordOf))].filter((word) => word !== name)
  const mayBeLeftOut = commands.some((one) => one.name === defaultWord)
  return {
    ...spec,
    usage: `${name} ${words.join('|')}`,
    run: async (given, io) => {
      const isLeftOut = mayBeLeftOut && (given[0] ?? '-').startsWith('-')
      const [word = '', ...args] = isLeftOut ? [defaultWord, ...given] : given
      const forms = commands.filter((one) => wordOf(one) === word)
      const flagged = forms.find(
        (one) => flagsOf(one).length > 0 && flagsOf(one).every((flag) => args.includes(flag)),
      )
      const form = flagged ?? forms.find((one) => flagsOf(one).length === 0)
      if (form) return await withUsage(forms, args, io, () => form.run(args, io))
      const isNamed = word !== '' && !word.startsWith('-')
      const message = isNamed
        ? `There is no command "${name} ${word}"${perhaps(word, words)}`
        : 'A command word is missing.'
      return wrongUsage(commands, given, io, message)
    },
  }
}

export const wordOf = ({ name }: { name: string }): string => name.split(' ')[0] ?? ''
const flagsOf = ({ name }: Command): string[] => name.split(' ').slice(1)
