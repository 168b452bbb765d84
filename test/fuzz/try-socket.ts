import { SocketFuzzer } from './socket-fuzzer.ts';

console.log(JSON.stringify(await SocketFuzzer.run({ messages: Number(process.argv[2]), lanes: 6, seed: 3 }), null, 1));
process.exit(0);
