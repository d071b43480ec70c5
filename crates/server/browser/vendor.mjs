// Rebuilds web/vendor from npm packages. The only argument is the folder where they are installed.
// The manifest lists the replacements, sizes and hash of each file. The hash covers the unpacked
// file.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync, readdirSync, rmSync, existsSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const installed = process.argv[2];
const vendor = new URL("../web/vendor/", import.meta.url).pathname;
const { packages } = JSON.parse(readFileSync(join(vendor, "packages.json"), "utf8"));

for (const name of readdirSync(vendor)) {
  if (name !== "packages.json") rmSync(join(vendor, name));
}

const manifest = [];
for (const { name, version, why, files } of packages) {
  const folder = join(installed, "node_modules", name);
  const packageJson = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (packageJson.version !== version) throw new Error(`${name} is ${packageJson.version}, not ${version}`);
  const licence = ["LICENSE", "LICENSE.md", "license", "LICENCE"].find((file) => existsSync(join(folder, file)));
  if (!licence) throw new Error(`${name} has no licence file`);
  const licenceFile = `${name.replace("@", "").replace("/", "-")}.LICENSE.txt`;
  writeFileSync(join(vendor, licenceFile), readFileSync(join(folder, licence), "utf8").replace(/[ \t]+$/gm, "").trimEnd() + "\n");
  const entries = files.map(({ from, to, replace = [] }) => {
    let text = readFileSync(join(folder, from), "utf8");
    // Source maps are not shipped, but browser developer tools would request them.
    text = text.replace(/\n?\/\/# sourceMappingURL=\S+\s*$/, "\n");
    for (const [search, replacement] of replace) {
      if (!text.includes(search)) throw new Error(`${name}: ${from} has no ${search}`);
      text = text.replaceAll(search, replacement);
    }
    const bytes = Buffer.from(text);
    const packed = gzipSync(bytes, { level: 9 });
    packed[9] = 255; // Operating system "unknown": the output is the same on every platform.
    writeFileSync(join(vendor, `${to}.gz`), packed);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    return { file: to, from, changes: replace, sha256, bytes: bytes.length, packed: packed.length };
  });
  manifest.push({ name, version, licence: packageJson.license, licence_file: licenceFile, why, files: entries });
}
writeFileSync(join(vendor, "manifest.json"), JSON.stringify(manifest, null, 2) + "\n");
for (const { name, version, licence, files } of manifest) {
  for (const { file, packed } of files) console.log(`${file}: ${name} ${version} (${licence}), ${packed} bytes`);
}
