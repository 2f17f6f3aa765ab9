/**
 * In the package, what classic-level takes for `node-gyp-build`: bundled, it has no directory of its own any more in which that could
 * look for the compiled part, so it is asked where it was installed.
 */
module.exports = () => require("classic-level/binding.js");
