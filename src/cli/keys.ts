import { newCookieKey } from '../auth/cookie-keys-file.ts'
import { type Command, wrongUsage } from './command.ts'

export const keys: Command = {
  name: 'keys',
  usage: 'keys generate',
  summary: 'Print one random key for CELLKEEP_COOKIE_KEYS.',
  async run(args, io) {
    if (args.length !== 1 || args[0] !== 'generate') return wrongUsage(keys, io)
    io.stdout.write(`${newCookieKey()}\n`)
    return 0
  },
}
