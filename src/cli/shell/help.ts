import { type Command, perhaps } from './command.ts'
import { wordOf } from './command-group.ts'
import { commands, groups, perhapsCommand } from './groups.ts'
import { aligned, type CommandIo } from './output.ts'

/** `help`, `help COMMAND`, `help COMMAND WORD`: enough to run the product without other documents. */
export function help([name, word]: readonly string[], io: CommandIo): number {
  if (name === undefined) {
    io.stdout.write(overview())
    return 0
  }
  const command = commands.find((one) => one.name === name)
  const own = command?.commands ?? []
  const found = word === undefined ? [command ?? []].flat() : own.filter((one) => wordOf(one) === word)
  if (found.length === 0) {
    const near = command && word ? perhaps(word, own.map(wordOf)) : perhapsCommand(name)
    const asked = [name, word].filter(Boolean).join(' ')
    const all = command ? `cellkeep help ${name}` : 'cellkeep help'
    io.stderr.write(`There is no command "${asked}"${near} \`${all}\` lists them.\n`)
    return 2
  }
  io.stdout.write(found.map(describe).join('\n'))
  return 0
}

function describe({ usage, summary, details, commands }: Command): string {
  const parts = [
    summary,
    commands
      ? commands.map((one) => `  cellkeep ${one.usage}\n      ${one.summary}`).join('\n')
      : `Usage: cellkeep ${usage}`,
    details,
  ]
  return `${parts.filter(Boolean).join('\n\n')}\n`
}

function overview(): string {
  const rowOf = ({ name, summary }: Command): string[] => [`  ${name.padEnd(16)}`, summary]
  const sections = Object.entries(groups).map(([title, all]) => `${title}\n${aligned(all.map(rowOf))}`)
  return `Cellkeep: accounts, roles, content and one audit log in one service.

Usage: cellkeep COMMAND ...        \`cellkeep help COMMAND\` explains a command and shows examples.

${sections.join('\n')}
First steps
  cellkeep start                                     a server with its own database, on 127.0.0.1:4040
  cellkeep account create --username ada --keeper    the first account, from another shell
  cellkeep invite create --email grace@example.org   lets this address sign up
  cellkeep account show grace@example.org            an account, its actors and roles
  cellkeep doctor                                    problems of this installation, and how to fix them

People and scripts
  An account signs in with sessions (browsers) or API tokens (scripts) and acts through its actors: one,
  unless you add more. Actors hold roles: \`admin\` manages accounts, the only \`keeper\` cannot be deleted,
  others belong to your application. The audit log records every change; commands appear there with \`via: cli\`.

How commands work
  They read the same configuration as the server (CELLKEEP_* variables and cellkeep.config.{ts,mjs,js,json} in
  the working directory; \`cellkeep config\` shows it), and work whether or not the server runs.
  --json          prints one JSON object per line, for scripts; refusals too, with their reason
  --yes           answers yes to the question that commands with this option ask before an irreversible change
  passwords       are prompted for or read from standard input, never from arguments or variables
  exit codes      0 done, 1 refused (standard error says why), 2 wrong usage, 3 no database or another
                  schema than this version needs, 78 invalid configuration
`
}
