import type { AnyCommand, Operation } from '../core/operation.ts'
import { operations } from '../operations.ts'
import { backup } from './backup.ts'
import { alone, type Command, group } from './command.ts'
import { config } from './config.ts'
import { daemonToken } from './daemon-token.ts'
import { doctor } from './doctor/doctor.ts'
import { keys } from './keys.ts'
import { migrate } from './migrate.ts'
import { operationCommand } from './operation-command.ts'
import { restore } from './restore.ts'
import { start } from './start.ts'

type About = { summary: string; details?: string }

const ref = 'REF is an account by its id, username or e-mail.'

/** The first words of all commands, in the groups that the help shows. What an operation declares is filled in. */
const sections: Record<string, Record<string, Command | About | null>> = {
  'Run it': {
    start,
    config,
    keys,
    doctor,
    audit: {
      summary: 'What happened: every sign-in, change and refusal that is recorded.',
      details:
        'One JSON object per line. `seq` rises without telling how many rows there are; standard error ends with the\nlast one, and --since-seq with it goes on from there without a gap or a repeat.\n\nExamples:\n  cellkeep audit export --since-seq 0\n  cellkeep audit export --event-type login --outcome failure\n  cellkeep audit export --out audit.jsonl',
    },
  },
  People: {
    account: {
      summary: 'Make, show, change, delete and purge accounts.',
      details: `${ref}\n\nExamples:\n  cellkeep account create --username ada --email ada@example.org\n  cellkeep account show ada@example.org\n  pass show ada | cellkeep account set-password ada\n  cellkeep account purge ada --confirm`,
    },
    actor: {
      summary: 'The actors of an account: whom it acts as, and who holds roles.',
      details: `${ref} ACTOR is the id that \`actor list\` shows.\n\nExample:\n  cellkeep actor add ada --name "Ada, accounting"`,
    },
    invite: {
      summary: 'Invite people, who then sign up by themselves.',
      details:
        'Nothing is sent and there is no code: tell the person to sign up with the invited e-mail or username.\n\nExample:\n  cellkeep invite create --email grace@example.org',
    },
    settings: {
      summary: 'Who may sign up. (`cellkeep config` shows the configuration of the server.)',
      details: 'Example:\n  cellkeep settings set open_signup true',
    },
  },
  'What they may': {
    role: {
      summary: 'Give roles and take them; `account show` lists them.',
      details: `${ref} --actor names one of its actors where it has several.\nRoles other than \`admin\` are declared in the config file; \`keeper\` moves by \`keeper transfer\` only.\n\nExamples:\n  cellkeep role assign ada admin\n  cellkeep role revoke ada admin`,
    },
    keeper: {
      summary: 'The keeper, who owns the installation and cannot be deleted; make it somebody else.',
      details:
        'The bootstrap makes the keeper, and nothing but this command moves it.\n\nExample:\n  cellkeep keeper transfer grace',
    },
    session: {
      summary: 'Who is signed in; end sessions.',
      details: `${ref} A session that ended is refused at its next request, on\nevery server.\n\nExamples:\n  cellkeep session list ada\n  cellkeep session revoke-all ada`,
    },
    token: {
      summary: 'The API tokens of scripts: make, list and end them.',
      details: `${ref} A secret is shown once, when its token is made.\n\nExamples:\n  cellkeep token create ada --scope cell_get,cell_list --days 90\n  cellkeep token list ada\n  cellkeep token revoke tok_x3Ff0aQ_9Zk2`,
    },
    'bootstrap-token': {
      summary: 'The one-time token that makes the first account.',
      details: 'Its file is readable by its owner only; a running server takes the new token at once.',
    },
    'daemon-token': daemonToken,
  },
  'The database': { migrate, backup, restore, cleanup: null },
}

const declared = Object.values(operations as unknown as Record<string, Operation>).flatMap((operation) =>
  operation.command
    ? [{ word: wordOf(operation.command), command: operationCommand(operation as never) }]
    : [],
)

/** One command alone, or the group of all whose first word it is. */
function filled(word: string, about: Command | About | null): Command {
  if (about && 'run' in about) return about
  const commands = declared.filter((one) => one.word === word).map(({ command }) => command)
  const [only] = commands
  if (only?.name === word) return alone(only)
  return group({ name: word, commands, ...(about ?? { summary: `${only?.summary}` }) })
}

function wordOf({ name }: AnyCommand): string {
  return name.split(' ')[0] as string
}

const known = new Set(Object.values(sections).flatMap((words) => Object.keys(words)))
const others = declared.filter(({ word }) => !known.has(word)).map(({ word }) => [word, null] as const)
if (others.length > 0) sections.More = Object.fromEntries(others)

/** By the titles of the help. */
export const groups: Readonly<Record<string, readonly Command[]>> = Object.fromEntries(
  Object.entries(sections).map(([title, words]) => [
    title,
    Object.entries(words).map(([word, about]) => filled(word, about)),
  ]),
)
export const commands = Object.values(groups).flat()
