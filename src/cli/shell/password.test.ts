import { PassThrough, Readable } from 'node:stream'
import { expect, it } from 'vitest'
import type { CommandIo } from './output.ts'
import { askPassword } from './password.ts'

/** A terminal: its input, and everything it shows. */
function terminal() {
  const typed = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => typed })
  let screen = ''
  const shows = { write: (text: string) => (screen += text) }
  const io: CommandIo = { stdin: typed, stdout: shows, stderr: shows, env: {}, cwd: '/' }
  return {
    io,
    type: async (...lines: string[]) => {
      for (const line of lines) {
        typed.write(line)
        await new Promise(setImmediate)
      }
    },
    screen: () => screen,
  }
}
const piped = (...chunks: (string | Buffer)[]): CommandIo => ({
  ...terminal().io,
  stdin: Readable.from(chunks),
})

it('a terminal is asked twice, supports editing, and shows nothing of the input', async () => {
  const { io, type, screen } = terminal()
  const asked = askPassword(io, 'ada')
  await type('correct hoX\u007frse\r', 'correct horse\r')
  expect(await asked).toBe('correct horse')
  expect(screen()).toBe('New password for ada: \nRepeat the password: \n')
})

it('two different inputs are asked for again', async () => {
  const { io, type, screen } = terminal()
  const asked = askPassword(io, 'ada')
  await type('one of them\r', 'the other\r', 'a third\r', 'a third\r')
  expect(await asked).toBe('a third')
  expect(screen()).toContain('The passwords differ')
})

it.each([
  ['two whole lines', 'the first\rthe second\r'],
  ['a line and the beginning of another', 'the first\nthe second'],
])('a paste of more than one line is no password: %s', async (_what, paste) => {
  const { io, type, screen } = terminal()
  const asked = askPassword(io, 'ada')
  await type(paste, 'the third\r', paste, 'the third\r')
  expect(await asked).toBe('the third')
  expect(screen()).toBe(
    ['New password for ada', 'Repeat the password']
      .map(
        (what) =>
          `${what}: \nMore than one line was pasted; none was used. Type or paste one line.\n${what}: \n`,
      )
      .join(''),
  )
})

it.each([
  ['Ctrl-C', '\u0003'],
  ['Ctrl-D', '\u0004'],
])('%s ends it, and nothing was changed', async (_key, typed) => {
  const { io, type } = terminal()
  const asked = askPassword(io, 'ada')
  asked.catch(() => {})
  await type(typed)
  await expect(asked).rejects.toMatchObject({ reason: 'interrupted', exitCode: 1 })
})

it.each([
  ['with a newline', ['secret word\n'], 'secret word'],
  ['without one', ['secret word'], 'secret word'],
  ['of Windows', ['secret word\r\n'], 'secret word'],
  ['with blanks and further lines, which belong to it', [' two\nlines \n\n'], ' two\nlines \n'],
  ['in pieces that cut a character', [Buffer.from('pä').subarray(0, 2), Buffer.from('pä').subarray(2)], 'pä'],
  ['after the byte order mark of some shells', ['\ufeffsecret word\r\n'], 'secret word'],
])('what is piped in is taken whole: %s', async (_what, chunks, password) => {
  expect(await askPassword(piped(...chunks), 'ada')).toBe(password)
})

it.each([
  ['nothing', []],
  ['an empty line', ['\n']],
  ['more than any password has', ['x'.repeat(4097)]],
  ['a text in Latin-1, which nobody could sign in with', [Buffer.from('größer als Latein', 'latin1')]],
])('%s is wrong usage', async (_what, chunks) => {
  await expect(askPassword(piped(...chunks), 'ada')).rejects.toThrow(/^Standard input is/)
})
