import type { Operation } from '../../core/operation.ts'
import { operations } from '../../operations.ts'
import { config, generateKey } from '../config.ts'
import { daemonToken } from '../daemon-token.ts'
import { backup, restore } from '../database/backup.ts'
import { migrate } from '../database/migrate.ts'
import { reindex } from '../database/reindex.ts'
import { doctor } from '../doctor/doctor.ts'
import { accountImport } from '../import.ts'
import { newProject } from '../new.ts'
import { nodeCommands } from '../nodes.ts'
import { call } from '../remote/call.ts'
import { login, logout } from '../remote/login.ts'
import { tail } from '../remote/tail.ts'
import { start } from '../start.ts'
import { top } from '../top/top.ts'
import { alone, type Command, perhaps } from './command.ts'
import { group, wordOf } from './command-group.ts'
import { completion } from './completion.ts'
import { isCommanded, operationCommand } from './operation-command.ts'

type About = { summary: string; details?: string; commands?: readonly Command[] }

const ref = 'REF is an account by its id, username or e-mail.'

/** The first words of all commands, by section of the help. Commands that operations declare are filled in. */
const sections: Record<string, Record<string, Command | About | null>> = {
  'Run it': {
    start,
    new: newProject,
    config,
    keys: {
      summary: 'Keys that sign cookies, and keys that encrypt secrets in the database.',
      commands: [generateKey],
    },
    doctor,
    nodes: nodeCommands,
    top,
    audit: {
      summary: 'The audit log: sign-ins, changes and recorded refusals.',
      details:
        'One JSON object per line. `seq` increases, but not always by one. The last line of standard error holds the last\n`seq`: pass it to --since-seq to continue from there, without a gap or a repeat.\n\nExamples:\n  cellkeep audit export --since-seq 0\n  cellkeep audit export --event-type login --outcome failure\n  cellkeep audit export --out audit.jsonl',
    },
  },
  People: {
    account: {
      summary: 'Create, import, show, change, delete and purge accounts.',
      commands: [accountImport],
      details: `${ref}\n\nExamples:\n  cellkeep account create --username ada --email ada@example.org\n  cellkeep account show ada@example.org\n  pass show ada | cellkeep account set-password ada\n  cellkeep account purge ada --confirm`,
    },
    actor: {
      summary: 'The actors of an account, which hold its roles and own its cells.',
      details: `${ref} ACTOR is the id that \`actor list\` shows.\n\nExample:\n  cellkeep actor add ada --name "Ada, accounting"`,
    },
    invite: {
      summary: 'Invite people to sign up.',
      details:
        'CELLKEEP_INVITE_CLAIM sets what a signup needs to claim an invite. Default without a mail server: its e-mail and\nusername. Default with one: also the token of its link.\n\nExamples:\n  cellkeep invite create --email grace@example.org\n  cellkeep invite send 0b9c… --reveal',
    },
    ticket: {
      summary: 'One-time links: to set a password, to confirm an e-mail, to accept an invite.',
      details: `${ref}\n\nExamples:\n  cellkeep account reset-link ada\n  cellkeep ticket list ada --open`,
    },
    mail: {
      summary: 'Messages to people: list them with their state, and test whether mail can be sent.',
      details: 'Example:\n  cellkeep mail test ada@example.org',
    },
    settings: {
      summary: 'Who may sign up. (`cellkeep config` shows the configuration of the server.)',
      details: 'Example:\n  cellkeep settings set open_signup true',
    },
  },
  'Roles and credentials': {
    role: {
      summary: 'Grant and revoke roles; `account show` lists them.',
      details: `${ref} Use --actor if it has several actors.\nRoles other than \`admin\` are declared in the config file; only \`keeper transfer\` moves \`keeper\`.\n\nExamples:\n  cellkeep role assign ada admin\n  cellkeep role revoke ada admin`,
    },
    keeper: {
      summary: 'Transfer the keeper role: the keeper owns the installation and cannot be deleted.',
      details:
        'The bootstrap creates the keeper. Only this command transfers the role.\n\nExample:\n  cellkeep keeper transfer grace',
    },
    session: {
      summary: 'List and end sessions.',
      details: `${ref} A revoked session is refused at its next request, on\nevery server.\n\nExamples:\n  cellkeep session list ada\n  cellkeep session revoke-all ada`,
    },
    token: {
      summary: 'Create, list and revoke API tokens for scripts.',
      details: `${ref} A secret is shown only once, when its token is created.\n\nExamples:\n  cellkeep token create ada --scope cell_get,cell_list --days 90\n  cellkeep token list ada\n  cellkeep token revoke tok_x3Ff0aQ_9Zk2`,
    },
    'bootstrap-token': {
      summary: 'The one-time token that creates the first account.',
      details: 'Only the owner of the file can read it. A running server accepts the new token at once.',
    },
    'daemon-token': daemonToken,
  },
  'Call a server': { login, logout, call, tail, completion: completion(() => commands) },
  'The database': { migrate, backup, restore, reindex, cleanup: null },
}

const declared = Object.values(operations as unknown as Record<string, Operation>)
  .filter(isCommanded)
  .map((operation) => ({ word: wordOf(operation.command), command: operationCommand(operation) }))

/** The command of this name, or the group of all commands that begin with this word. */
function filled(word: string, about: Command | About | null): Command {
  if (about && 'run' in about) return about
  const commands = declared.filter((one) => one.word === word).map(({ command }) => command)
  const [only] = commands
  if (only?.name === word && !about) return alone(only)
  const { commands: own = [], ...rest } = about ?? { summary: `${only?.summary}` }
  return group({ name: word, ...rest, commands: [...own, ...commands] })
}

const known = new Set(Object.values(sections).flatMap((words) => Object.keys(words)))
const others = declared.filter(({ word }) => !known.has(word)).map(({ word }) => [word, null] as const)
if (others.length > 0) sections.More = Object.fromEntries(others)

/** By section of the help. */
export const groups: Readonly<Record<string, readonly Command[]>> = Object.fromEntries(
  Object.entries(sections).map(([title, words]) => [
    title,
    Object.entries(words).map(([word, about]) => filled(word, about)),
  ]),
)
export const commands: readonly Command[] = Object.values(groups).flat()

/** Like `perhaps`; a word that only one group has suggests the command of that group. */
export function perhapsCommand(word: string): string {
  const inGroups = commands.flatMap(({ name, commands: own = [] }) =>
    own.some((one) => wordOf(one) === word) ? [`${name} ${word}`] : [],
  )
  return inGroups.length === 1 ? `; did you mean ${inGroups}?` : perhaps(word, commands.map(wordOf))
}
