import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { wireTo } from './wire.ts'

it('keeps the order of what it carries, even when its delay ends', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'ck-wire-'))
  const socket = join(dir, 'socket')
  const echo = createServer((one) => one.pipe(one)).listen(socket)
  await once(echo, 'listening')
  const wire = await wireTo(socket)
  const client = connect(wire.address)
  onTestFinished(async () => {
    client.destroy()
    await wire.close()
    echo.close()
    await rm(dir, { recursive: true })
  })
  client.setNoDelay(true).setEncoding('utf8')
  await once(client, 'connect')
  client.write('are you there?')
  await once(client, 'data')

  let got = ''
  const all = new Promise<void>((resolve) => {
    client.on('data', (text: string) => {
      got += text
      if (got.length === 10) resolve()
    })
  })
  for (let n = 0; n < 10; n++) {
    wire.delay(n % 2 === 0 ? 50 : 0)
    client.write(`${n}`)
    // So that each arrives as a chunk of its own.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await all
  expect(got).toBe('0123456789')
})
